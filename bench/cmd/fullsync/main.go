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
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	program = flag.String("server", "../ebb", "the master's program")
	other   = flag.String("replica", "", "the replica's program (default: that of the master)")
	keys    = flag.Int("keys", 1_000_000, "keys, with values of 32 bytes")
	rate    = flag.Int("rate", 4000, "writes a second meanwhile")
	clients = flag.Int("clients", 4, "connections of the writers")
	rounds  = flag.Int("rounds", 3, "rounds, each with new servers")
	before  = flag.Duration("before", 3*time.Second, "the time for which writes are measured before")
	port    = flag.Int("port", 7650, "the master's port; the replica has the next one")
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
	master, stop, err := start(ctx, *program, *port)
	if err != nil {
		return err
	}
	defer stop()
	if err := fill(ctx, master); err != nil {
		return err
	}
	replica, stop, err := start(ctx, *other, *port+1)
	if err != nil {
		return err
	}
	defer stop()
	w := writers{ctx: ctx}
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
	if err := replica.Do(ctx, "REPLICAOF", "127.0.0.1", *port).Err(); err != nil {
		return err
	}
	if err := caughtUp(ctx, master, replica); err != nil {
		return err
	}
	took, busy := time.Since(began), w.take()
	fmt.Printf("%6.2f s; writes before: %v; during: %v\n", took.Seconds(), idle, busy)
	return nil
}

// start starts a server, and returns a client of it.
func start(ctx context.Context, program string, port int) (c *redis.Client, stop func(), err error) {
	args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0"}
	if strings.Contains(filepath.Base(program), "ebb") {
		args = append([]string{"serve"}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	if cmd.Dir, err = os.MkdirTemp("", "fullsync-"); err != nil {
		return nil, nil, err
	}
	if program, err = exec.LookPath(program); err != nil {
		return nil, nil, err
	}
	if cmd.Path, err = filepath.Abs(program); err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	c = redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	stop = func() {
		_ = c.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(cmd.Dir)
	}
	for range 1000 {
		if err = c.Ping(ctx).Err(); err == nil {
			return c, stop, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return nil, nil, err
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
	ctx  context.Context
	stop atomic.Bool
	all  sync.WaitGroup

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
	c, err := new(net.Dialer).DialContext(w.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)))
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
