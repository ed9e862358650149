// Command fullsync measures how long a master needs to bring its keys to an empty replica while clients write to it, and how long
// these writes take:
//
//	cd bench && go run ./cmd/fullsync -server ../ebb
//	cd bench && go run ./cmd/fullsync -server redis-server -replica ../ebb
//
// The replica has all when its link is up and it has received what the master had written when the link came up. Both servers keep
// nothing on disk, and the master does not wait for more replicas. A write that has to wait for the one before counts from the
// instant at which it was due.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/bench/servers"
)

var (
	program = flag.String("server", "../ebb", "the master's program")
	other   = flag.String("replica", "", "the replica's program (default: that of the master)")
	keys    = flag.Int("keys", 1_000_000, "keys, with values of 32 bytes")
	rate    = flag.Int("rate", 4000, "writes a second meanwhile")
	clients = flag.Int("clients", 4, "connections of the writers")
	rounds  = flag.Int("rounds", 3, "rounds, each with new servers")
	before  = flag.Duration("before", 3*time.Second, "the time for which writes are measured before")
)

const value = "a value of thirty-two characters"

func main() {
	flag.Parse()
	if *other == "" {
		other = program
	}
	fmt.Printf("%s to %s, %d keys, %d writes a second\n", filepath.Base(*program), filepath.Base(*other), *keys, *rate)
	for range *rounds {
		if err := round(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "fullsync:", err)
			os.Exit(1)
		}
	}
}

// round measures once.
func round(ctx context.Context) (err error) {
	server, master, stop, err := start(ctx, *program)
	if err != nil {
		return err
	}
	defer stop()
	if err := fill(ctx, master); err != nil {
		return err
	}
	_, replica, stop, err := start(ctx, *other)
	if err != nil {
		return err
	}
	defer stop()
	w := writers{ctx: ctx, server: server}
	for id := range *clients {
		w.all.Go(func() { w.failed(w.write(id)) })
	}
	defer func() {
		w.stop.Store(true)
		w.all.Wait()
		err = errors.Join(err, w.err)
	}()
	time.Sleep(*before)
	idle := w.take()
	began := time.Now()
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		return err
	}
	if err := replica.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return err
	}
	if err := caughtUp(ctx, master, replica); err != nil {
		return err
	}
	took, busy := time.Since(began), w.take()
	fmt.Printf("%6.2f s; writes before: %v; during: %v\n", took.Seconds(), idle, busy)
	return nil
}

// start starts a server, and returns a client of it. stop ends both.
func start(ctx context.Context, program string) (s *servers.Server, c *redis.Client, stop func(), err error) {
	if s, err = servers.Start(ctx, program, "--repl-diskless-sync-delay", "0"); err != nil {
		return nil, nil, nil, err
	}
	c = redis.NewClient(&redis.Options{Addr: s.Addr})
	return s, c, func() { _ = c.Close(); s.Stop() }, nil
}

// fill stores the keys.
func fill(ctx context.Context, c *redis.Client) error {
	const batch = 1000
	for from := 0; from < *keys; from += batch {
		p := c.Pipeline()
		for i := from; i < min(from+batch, *keys); i++ {
			p.Set(ctx, "key:"+strconv.Itoa(i), value, 0)
		}
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// caughtUp waits until the replica has all.
func caughtUp(ctx context.Context, master, replica *redis.Client) error {
	for goal := ""; ; time.Sleep(10 * time.Millisecond) {
		info, err := replica.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, "master_link_status:up") {
			continue
		}
		at := field(info, "slave_repl_offset")
		if goal == "" {
			if info, err = master.Info(ctx, "replication").Result(); err != nil {
				return err
			}
			goal = field(info, "master_repl_offset")
		}
		has, err := strconv.Atoi(at)
		if err != nil {
			return err
		}
		if wants, err := strconv.Atoi(goal); err != nil || has >= wants {
			return err
		}
	}
}

// field returns a field of INFO.
func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	return text
}

// writers are the clients that write.
type writers struct {
	ctx    context.Context
	server *servers.Server
	stop   atomic.Bool
	all    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	taken times
	err   error
}

// times are those of writes.
type times []time.Duration

func (t times) String() string {
	if len(t) == 0 {
		return "none"
	}
	slices.Sort(t)
	at := func(q float64) time.Duration { return t[int(float64(len(t)-1)*q)].Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d, p50 %v, p99 %v, max %v", len(t), at(0.5), at(0.99), at(1))
}

// take returns the times since the last call.
func (w *writers) take() times {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.taken
	w.taken = nil
	return t
}

func (w *writers) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

// write sends writes at the instants at which they are due.
func (w *writers) write(id int) error {
	c, err := w.server.Dial(w.ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	draw := rand.New(rand.NewPCG(uint64(id), 0))
	gap := time.Second * time.Duration(*clients) / time.Duration(*rate)
	for due, free := time.Now(), time.Now(); !w.stop.Load(); due = due.Add(gap) {
		time.Sleep(time.Until(due))
		from := time.Now()
		if free.After(due) { // the write before has made it late, and not the sleep
			from = due
		}
		key := "key:" + strconv.Itoa(draw.IntN(*keys))
		if _, err := fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value); err != nil {
			return err
		}
		if line, err := r.ReadString('\n'); err != nil || line != "+OK\r\n" {
			return fmt.Errorf("a write got the reply %q: %w", line, err)
		}
		free = time.Now()
		w.mu.Lock()
		w.taken = append(w.taken, free.Sub(from))
		w.mu.Unlock()
	}
	return nil
}
