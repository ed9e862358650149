// Command fanout measures how long a message takes to a thousand subscribers of its channel, and what a delivery costs the server:
//
//	cd bench && go run ./cmd/fanout -server ../ebb
//	cd bench && go run ./cmd/fanout -server redis-server
//
// It starts the server, subscribes, and publishes at a rate: with 1,000 subscribers, 50 messages a second are 50,000 deliveries.
package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/bench/servers"
)

var (
	program     = flag.String("server", "../ebb", "the server's program")
	subscribers = flag.Int("subscribers", 1000, "connections that have subscribed")
	rate        = flag.Int("rate", 50, "messages a second")
	messages    = flag.Int("messages", 500, "messages in a round")
	rounds      = flag.Int("rounds", 3, "rounds, each with a new server")
)

// A message is the instant of its PUBLISH in ns, in twenty digits, so that all deliveries have the same length.
const (
	subscribe = "*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n"
	accepted  = "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"
	publish   = "*3\r\n$7\r\nPUBLISH\r\n$2\r\nch\r\n$20\r\n%020d\r\n"
	delivery  = "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$20\r\n"
	length    = len(delivery) + 22
)

func main() {
	flag.Parse()
	fmt.Printf("%s, %d subscribers, %d messages a second\n", filepath.Base(*program), *subscribers, *rate)
	for range *rounds {
		if err := round(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "fanout:", err)
			os.Exit(1)
		}
	}
}

// round measures once, with a new server.
func round(ctx context.Context) error {
	server, err := servers.Start(ctx, *program)
	if err != nil {
		return err
	}
	defer server.Stop()
	publisher, err := server.Dial(ctx)
	if err != nil {
		return err
	}
	defer publisher.Close()
	late, errs := make([][]time.Duration, *subscribers), make([]error, *subscribers)
	var all sync.WaitGroup
	for i := range *subscribers {
		c, err := server.Dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.WriteString(c, subscribe); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, make([]byte, len(accepted))); err != nil {
			return err
		}
		all.Go(func() { late[i], errs[i] = receive(c) })
	}
	before, err := server.CPU()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := send(publisher, began); err != nil {
		return err
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := server.CPU()
	if err != nil {
		return err
	}
	report(slices.Concat(late...), took, after-before)
	return nil
}

// send publishes the messages.
func send(c net.Conn, began time.Time) error {
	in := bufio.NewReader(c)
	for i := range *messages {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(*rate))))
		if _, err := fmt.Fprintf(c, publish, time.Now().UnixNano()); err != nil {
			return err
		}
		reply, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if want := ":" + strconv.Itoa(*subscribers) + "\r\n"; reply != want {
			return fmt.Errorf("PUBLISH replied %q, want %q", reply, want)
		}
	}
	return nil
}

// receive returns how late the messages arrived.
func receive(c net.Conn) (late []time.Duration, err error) {
	buf := make([]byte, length)
	for range *messages {
		if _, err := io.ReadFull(c, buf); err != nil {
			return nil, err
		}
		digits, found := strings.CutPrefix(string(buf[:length-2]), delivery)
		at, err := strconv.ParseInt(digits, 10, 64)
		if !found || err != nil {
			return nil, fmt.Errorf("received %q", buf)
		}
		late = append(late, time.Since(time.Unix(0, at)))
	}
	return late, nil
}

func report(late []time.Duration, took, used time.Duration) {
	slices.Sort(late)
	fmt.Printf("%d deliveries, %.0f a second; late: p50 %.2f ms, p99 %.2f ms, max %.2f ms; CPU of the server: %.2f us a delivery\n",
		len(late), float64(len(late))/took.Seconds(), ms(late[len(late)/2]), ms(late[len(late)*99/100]), ms(late[len(late)-1]),
		float64(used.Nanoseconds())/1e3/float64(len(late)))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
