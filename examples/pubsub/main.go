// Command pubsub shows screens with prices: some show the prices of all cities, some those
// of one city, and one is too slow.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/topic"
)

func main() { example.Main(run) }

// price is the content of a message, as JSON.
type price struct {
	Ticket string
	Cents  int
}

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	for _, part := range []func(context.Context, *ebb.Conn, io.Writer) error{commands, screens, slow, shards} {
		if err := part(ctx, c, w); err != nil {
			return err
		}
	}
	return nil
}

// commands uses the commands SUBSCRIBE, PUBLISH and UNSUBSCRIBE.
func commands(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "SUBSCRIBE, PUBLISH, UNSUBSCRIBE")
	say := func(text string) error {
		n, err := c.Publish(ctx, "news", text)
		fmt.Fprintf(w, "  PUBLISH news %q reaches %d\n", text, n)
		return err
	}
	if err := say("is a reader there?"); err != nil {
		return err
	}
	s, err := c.Subscribe(ctx, "news")
	if err != nil {
		return err
	}
	if err := say("good morning"); err != nil {
		return errors.Join(err, s.Close())
	}
	m, err := s.Next(ctx)
	fmt.Fprintf(w, "  the subscriber gets %q\n", m.Payload)
	if err := errors.Join(err, s.Close()); err != nil { // UNSUBSCRIBE
		return err
	}
	for { // the server may notice a moment later
		n, err := c.Publish(ctx, "news", "good night")
		if err != nil {
			return err
		}
		if n == 0 {
			fmt.Fprintln(w, "  after UNSUBSCRIBE it reaches no client")
			return nil
		}
	}
}

// screens subscribe to one topic and to a pattern.
func screens(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "topics and patterns")
	topics := map[string]*topic.Topic[price]{}
	for _, city := range []string{"rome", "oslo"} {
		t, err := topic.New(c, "prices."+city, topic.Options[price]{})
		if err != nil {
			return err
		}
		topics[city] = t
	}
	rome, err := topics["rome"].Subscribe(ctx)
	if err != nil {
		return err
	}
	all, err := topic.PSubscribe(ctx, c, topic.Options[price]{}, "prices.*")
	if err != nil {
		return errors.Join(err, rome.Close())
	}
	var wg sync.WaitGroup
	seen := make([][]string, 2)
	watch := func(at int, s *topic.Subscription[price], n int) {
		for m, err := range s.All(ctx) {
			if err != nil {
				seen[at] = append(seen[at], err.Error())
				return
			}
			seen[at] = append(seen[at], fmt.Sprintf("%s %s %d", strings.TrimPrefix(m.Channel, "prices."), m.Value.Ticket, m.Value.Cents))
			if len(seen[at]) == n {
				return
			}
		}
	}
	wg.Go(func() { watch(0, rome, 1) })
	wg.Go(func() { watch(1, all, 2) })
	_, err1 := topics["oslo"].Publish(ctx, price{"opera", 6900})
	_, err2 := topics["rome"].Publish(ctx, price{"opera", 4500})
	wg.Wait()
	fmt.Fprintf(w, "  screen of prices.rome: %s\n", strings.Join(seen[0], ", "))
	fmt.Fprintf(w, "  screen of prices.*:    %s\n", strings.Join(seen[1], ", "))
	return errors.Join(err1, err2, rome.Close(), all.Close())
}

// slow shows a subscriber that does not take its messages.
func slow(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "a slow subscriber is cut off at its backlog, and told")
	t, err := topic.New(c, "ticker", topic.Options[int]{Backlog: 100})
	if err != nil {
		return err
	}
	s, err := t.Subscribe(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := 1; s.Err() == nil; i++ {
		if _, err := t.Publish(ctx, i); err != nil {
			return err
		}
	}
	got := 0
	for m, err := range s.All(ctx) {
		if errors.Is(err, topic.ErrSlow) {
			fmt.Fprintf(w, "  %d messages, the last of them %d, and then: %v\n", got, got, err)
			break
		}
		if err != nil || m.Value != got+1 {
			return fmt.Errorf("after %d comes %v: %w", got, m.Value, err)
		}
		got++
	}
	return nil
}

// shards shows topics that belong to one node of a cluster.
func shards(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w, "shards")
	t, err := topic.New(c, "carts", topic.Options[string]{Sharded: true})
	if err != nil {
		return err
	}
	s, err := t.Subscribe(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := t.Publish(ctx, "cart 17 is full"); err != nil {
		return err
	}
	m, err := s.Next(ctx)
	fmt.Fprintf(w, "  %s: %q\n", t, m.Value)
	return err
}
