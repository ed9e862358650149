package goredis_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/wires"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/topic"
)

var messages = flag.Int("messages", 0, "how many numbered messages each test of subscriptions sends; 0: 20,000, or 5,000 with -short")

// feeder is a server at the other end of a pipe: it confirms a subscription and then
// writes pieces, each of which is one read of the client.
func feeder(c net.Conn, pieces func(resp3 bool) [][]byte) {
	defer c.Close()
	var p wire.Parser
	var in []byte
	resp3 := false
	for buf := make([]byte, 4096); ; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		for in = append(in, buf[:n]...); ; {
			args, length, err := p.Next(in)
			if err != nil || length == 0 {
				break
			}
			name, answer := strings.ToUpper(string(args[0])), "-ERR unknown\r\n"
			subscribed := false
			switch name {
			case "HELLO":
				resp3 = len(args) > 1 && string(args[1]) == "3"
				answer = "%1\r\n$5\r\nproto\r\n:3\r\n"
			case "PING", "CLIENT":
				answer = "+OK\r\n"
			case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
				answer = frame(resp3, strings.ToLower(name), string(args[1])) // three elements: a number ends it
				subscribed = true
			}
			in = in[length:]
			if _, err := c.Write([]byte(answer)); err != nil {
				return
			}
			if !subscribed {
				continue
			}
			for _, piece := range pieces(resp3) {
				if _, err := c.Write(piece); err != nil {
					return
				}
			}
		}
	}
}

// frame is a confirmation of a subscription, or a message, as it is sent.
func frame(resp3 bool, words ...string) string {
	var b strings.Builder
	n := len(words)
	if strings.HasSuffix(words[0], "subscribe") {
		n++
	}
	if resp3 {
		fmt.Fprintf(&b, ">%d\r\n", n)
	} else {
		fmt.Fprintf(&b, "*%d\r\n", n)
	}
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if n > len(words) {
		b.WriteString(":1\r\n")
	}
	return b.String()
}

func TestNoMessageIsLostWhereverItsFrameIsCut(t *testing.T) {
	kinds := []struct {
		name      string
		words     []string
		subscribe func(*ebb.Conn, context.Context, ...string) (*ebb.Subscription, error)
	}{
		{"message", []string{"message", "c"}, (*ebb.Conn).Subscribe},
		{"pmessage", []string{"pmessage", "c*", "c-of-a-longer-name"}, (*ebb.Conn).PSubscribe},
		{"smessage", []string{"smessage", "{c}"}, (*ebb.Conn).SSubscribe},
	}
	for _, kind := range kinds {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s over RESP%d", kind.name, protocol), func(t *testing.T) {
				size := len(frame(true, append(kind.words, "0000")...))
				n := 2*size + 10
				pieces := func(resp3 bool) [][]byte {
					if resp3 != (protocol == 3) {
						t.Errorf("RESP3: %v", resp3)
					}
					var all [][]byte
					var piece []byte
					for i := range n { // frame i is cut at byte i, and the end comes byte by byte
						f := frame(resp3, append(kind.words, fmt.Sprintf("%04d", i))...)
						at := i % size
						all = append(all, append(piece, f[:at]...))
						piece = []byte(f[at:])
						for ; i > 2*size && len(piece) > 0; piece = piece[1:] {
							all = append(all, piece[:1])
						}
					}
					all = append(all, piece)
					return without(all)
				}
				var servers sync.WaitGroup
				defer servers.Wait()
				ctx := testContext(t)
				c, err := ebb.Open(ctx, fmt.Sprintf("redis://there?protocol=%d", protocol),
					ebb.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
						here, there := net.Pipe()
						servers.Go(func() { feeder(there, pieces) })
						return here, nil
					}})
				must(t, err)
				defer func() { must(t, c.Close()) }()
				s, err := kind.subscribe(c, ctx, kind.words[1])
				must(t, err)
				for i := range n {
					m, err := s.Next(ctx)
					if err != nil || m.Payload != fmt.Sprintf("%04d", i) {
						t.Fatalf("message %d: %+v, %v", i, m, err)
					}
				}
			})
		}
	}
}

// without leaves out empty pieces.
func without(pieces [][]byte) (all [][]byte) {
	for _, p := range pieces {
		if len(p) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// shorn opens a server over connections that are read in small pieces.
func shorn(t *testing.T, url string) (*ebb.Conn, *drivertest.Shears) {
	t.Helper()
	s := &drivertest.Shears{Most: 64}
	c, err := ebb.Open(testContext(t), url, ebb.Options{Dial: s.Connect})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c, s
}

// publishes adds a PUBLISH to a batch.
func publishes(channel string) func(b *ebb.Batch, text string) {
	return func(b *ebb.Batch, text string) { b.Do("PUBLISH", channel, text) }
}

func TestEveryMessageComesOrAnInterruptionTellsOfIt(t *testing.T) {
	programs := map[string]func(t *testing.T) string{
		"redis-server": func(t *testing.T) string { return realserver.Start(t, "redis-server", "--save", "") },
		"ebb": func(t *testing.T) string {
			p := realserver.NewProcess(t, realserver.Ebb(t))
			p.Start()
			return p.Addr()
		},
	}
	for program, start := range programs {
		t.Run(program, func(t *testing.T) {
			addr := start(t)
			from := open(t, "redis://"+addr)
			for _, protocol := range []int{2, 3} {
				for _, cuts := range []int{0, 5} {
					t.Run(fmt.Sprintf("RESP%d, %d cuts", protocol, cuts), func(t *testing.T) {
						numbered(t, from, fmt.Sprintf("redis://%s?protocol=%d", addr, protocol), cuts)
					})
				}
			}
		})
	}
}

// numbered sends messages to each kind of subscriber.
func numbered(t *testing.T, from *ebb.Conn, url string, cuts int) {
	ctx := testContext(t)
	kinds := map[string]func(t *testing.T, c *ebb.Conn, m *drivertest.Messages){
		"Subscribe": func(t *testing.T, c *ebb.Conn, m *drivertest.Messages) {
			s, err := c.Subscribe(ctx, "news")
			must(t, err)
			m.Publish, m.Next = publishes("news"), payloads(s)
		},
		"PSubscribe": func(t *testing.T, c *ebb.Conn, m *drivertest.Messages) {
			s, err := c.PSubscribe(ctx, "a-channel-with-a-longer-name:*")
			must(t, err)
			m.Publish, m.Next = publishes("a-channel-with-a-longer-name:of-one"), payloads(s)
		},
		"topic": func(t *testing.T, c *ebb.Conn, m *drivertest.Messages) {
			o := topic.Options[string]{Backlog: 1 << 20}
			to, err := topic.New(c, "orders", o)
			must(t, err)
			s, err := to.Subscribe(ctx)
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			m.Publish = publishes("orders")
			m.Next = func(ctx context.Context) (string, error) {
				v, err := s.Next(ctx)
				return v.Value, err
			}
		},
		"events of keys": func(t *testing.T, c *ebb.Conn, m *drivertest.Messages) {
			_, err := from.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "E$")
			must(t, err)
			s, err := c.Subscribe(ctx, "__keyevent@0__:set")
			must(t, err)
			m.Publish, m.Next = func(b *ebb.Batch, text string) { b.Do("SET", text, 1) }, payloads(s)
		},
	}
	for kind, begin := range kinds {
		t.Run(kind, func(t *testing.T) {
			c, shears := shorn(t, url)
			m := drivertest.Messages{N: drivertest.Many(*messages), Cuts: cuts, Shears: shears}
			begin(t, c, &m)
			m.Run(t, from).Check(t, m.N, cuts)
		})
	}
}

// payloads takes a subscription's.
func payloads(s *ebb.Subscription) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		m, err := s.Next(ctx)
		return m.Payload, err
	}
}

// piped opens a feeder's connections in a bubble, and what writes to them fails once broken
// is closed.
type piped struct {
	net.Conn
	broken <-chan struct{}
}

func (p piped) Write(b []byte) (int, error) {
	select {
	case <-p.broken:
		return 0, io.ErrClosedPipe
	default:
		return p.Conn.Write(b)
	}
}

// turns is a server's connection: what it says to one command ends before the next.
type turns struct {
	net.Conn
	turn chan struct{} // whose room is the turn
}

func (c turns) Write(b []byte) (int, error) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	return c.Conn.Write(b)
}

// inBubble subscribes to a feeder in virtual time. again counts the connections that were
// subscribed.
func inBubble(t *testing.T, broken <-chan struct{}, feed func(conn int, write func(string)), test func(t *testing.T, s *ebb.Subscription)) {
	synctest.Test(t, func(t *testing.T) {
		var servers sync.WaitGroup
		conns := 0
		w := &wires.Wires{Dial: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			out := turns{there, make(chan struct{}, 1)}
			servers.Go(func() {
				feeder(out, func(bool) [][]byte {
					conns++
					conn := conns
					out.turn <- struct{}{}
					servers.Go(func() {
						defer func() { <-out.turn }()
						feed(conn, func(text string) { _, _ = there.Write([]byte(text)) })
					})
					return nil
				})
			})
			var b <-chan struct{}
			if conns == 0 {
				b = broken
			}
			return piped{here, b}, nil
		}}
		c, err := ebb.Open(t.Context(), "redis://there", ebb.Options{Dial: w.Connect})
		must(t, err)
		s, err := c.Subscribe(t.Context(), "c")
		must(t, err)
		test(t, s)
		must(t, c.Close())
		servers.Wait()
	})
}

func TestASilenceInTheMiddleOfAMessageDoesNotBreakIt(t *testing.T) {
	f := frame(true, "message", "c", "one two three")
	for _, at := range []int{1, len(f) / 2, len(f) - 1} {
		inBubble(t, nil, func(_ int, write func(string)) {
			write(f[:at])
			time.Sleep(20 * time.Second) // virtual: the feed sends PING meanwhile
			write(f[at:])
			write(f)
		}, func(t *testing.T, s *ebb.Subscription) {
			for range 2 {
				if m, err := s.Next(t.Context()); m.Payload != "one two three" || err != nil {
					t.Errorf("cut at %d: %+v, %v", at, m, err)
				}
			}
		})
	}
}

func TestAConnectionThatIsMadeAgainIsToldOf(t *testing.T) {
	broken := make(chan struct{})
	inBubble(t, broken, func(conn int, write func(string)) {
		write(frame(true, "message", "c", fmt.Sprint(conn)))
	}, func(t *testing.T, s *ebb.Subscription) {
		if m, err := s.Next(t.Context()); m.Payload != "1" || err != nil {
			t.Errorf("%+v, %v", m, err)
		}
		close(broken) // PING cannot be sent: go-redis makes another connection by itself
		if m, err := s.Next(t.Context()); !errors.Is(err, ebb.ErrInterrupted) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

func TestASubscriberThatTakesNothingIsNotInterrupted(t *testing.T) {
	inBubble(t, nil, func(_ int, write func(string)) {
		write(frame(true, "message", "c", "1"))
		write(frame(true, "message", "c", "2"))
	}, func(t *testing.T, s *ebb.Subscription) {
		time.Sleep(10 * time.Minute) // virtual
		for _, want := range []string{"1", "2"} {
			if m, err := s.Next(t.Context()); m.Payload != want || err != nil {
				t.Errorf("%+v, %v", m, err)
			}
		}
	})
}

func TestASubscriptionToASilentServerIsInterrupted(t *testing.T) {
	inBubble(t, nil, func(int, func(string)) { time.Sleep(time.Minute) }, func(t *testing.T, s *ebb.Subscription) { // virtual
		began := time.Now()
		if m, err := s.Next(t.Context()); !errors.Is(err, ebb.ErrInterrupted) || time.Since(began) > 45*time.Second {
			t.Errorf("%+v, %v after %v", m, err, time.Since(began))
		}
	})
}
