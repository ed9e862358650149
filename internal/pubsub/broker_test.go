package pubsub

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
	"pgregory.net/rapid"
)

// client is a Subscriber that keeps its messages.
type client struct {
	resp3 bool
	subs  Subscriptions
	got   []byte
}

func (c *client) Push(msg []byte)               { c.got = append(c.got, msg...) }
func (c *client) PushBare(msg []byte)           { c.got = append(c.got, msg...) }
func (c *client) RESP3() bool                   { return c.resp3 }
func (c *client) Subscriptions() *Subscriptions { return &c.subs }

// take returns the messages since the last call, each as its words.
func (c *client) take() (all []string) {
	r := bufio.NewReader(bytes.NewReader(c.got))
	for {
		v, err := wire.ReadValue(r)
		if err != nil {
			c.got = nil
			return all
		}
		if want := map[bool]resp.Kind{false: resp.KindArray, true: resp.KindPush}[c.resp3]; v.Kind != want {
			return append(all, fmt.Sprintf("a message of kind %v", v.Kind))
		}
		var words []string
		for _, e := range v.Elems {
			words = append(words, e.Str)
		}
		all = append(all, strings.Join(words, " "))
	}
}

// memory is a Memory that adds up.
type memory struct{ n int64 }

func (m *memory) ChargeApart(n int64) { m.n += n }

func subscribe(b *Broker, c Subscriber, k Kind, names ...string) (counts []int) {
	b.Subscribe(c, k, texts(names), func(_ []byte, n int) { counts = append(counts, n) })
	return counts
}

func texts(names []string) (all [][]byte) {
	for _, n := range names {
		all = append(all, []byte(n))
	}
	return all
}

// The broker finds patterns by their literal prefix, and delivers their messages in the
// order in which the patterns were created.
func TestPatternsGetMessagesInTheirOrder(t *testing.T) {
	var b Broker
	b.Init(&memory{})
	c := &client{}
	long := strings.Repeat("x", 100)
	patterns := []string{"n*", "*", "ne?s", "[n]ews", "news", `n\ews`, "new", "", "n*s", long + "*", long + "y", long, "news*"}
	subscribe(&b, c, Pattern, patterns...)
	for channel, want := range map[string][]string{
		"news":     {"n*", "*", "ne?s", "[n]ews", "news", `n\ews`, "n*s", "news*"},
		"":         {"*", ""},
		long + "y": {"*", long + "*", long + "y"},
	} {
		n := b.Publish(Channel, []byte(channel), []byte("m"), false, nil)
		for i := range want {
			want[i] = "pmessage " + want[i] + " " + channel + " m"
		}
		if got := c.take(); n != len(want) || !slices.Equal(got, want) {
			t.Errorf("%.10q: %d messages: %.20q, want %.20q", channel, n, got, want)
		}
	}
}

// model does what the broker must do, by walks over all subscriptions.
type model struct {
	broker  Broker
	mem     memory
	clients []*client
	subs    []map[string]bool // by client: kind and name
	order   []string          // patterns, as they were created
}

func word(k Kind, name string) string { return fmt.Sprint(k, name) }

func (m *model) has(k Kind, name string) bool {
	return slices.ContainsFunc(m.subs, func(s map[string]bool) bool { return s[word(k, name)] })
}

// count is the number that a subscription command replies.
func (m *model) count(i int, k Kind) (n int) {
	for w := range m.subs[i] {
		if (w[0] == '2') == (k == Shard) {
			n++
		}
	}
	return n
}

// tidy removes patterns without subscribers from the order.
func (m *model) tidy() {
	m.order = slices.DeleteFunc(m.order, func(p string) bool { return !m.has(Pattern, p) })
}

func (m *model) subscribe(t *rapid.T, i int, k Kind, name string) {
	if k == Pattern && !m.has(k, name) {
		m.order = append(m.order, name)
	}
	m.subs[i][word(k, name)] = true
	if got := subscribe(&m.broker, m.clients[i], k, name); !slices.Equal(got, []int{m.count(i, k)}) {
		t.Fatalf("subscribing to %q replies %v, want %d", name, got, m.count(i, k))
	}
}

func (m *model) unsubscribe(t *rapid.T, i int, k Kind, name string) {
	delete(m.subs[i], word(k, name))
	m.tidy()
	if got := m.broker.Unsubscribe(m.clients[i], k, texts([]string{name})); !slices.Equal(got, []int{m.count(i, k)}) {
		t.Fatalf("unsubscribing from %q replies %v, want %d", name, got, m.count(i, k))
	}
}

func (m *model) leave(i int) {
	m.subs[i] = map[string]bool{}
	m.tidy()
	m.broker.Leave(m.clients[i])
}

// publish compares the messages of every client with those of the model.
func (m *model) publish(t *rapid.T, k Kind, channel string) {
	n := m.broker.Publish(k, []byte(channel), []byte("m"), false, nil)
	for i, c := range m.clients {
		var want []string
		switch {
		case k == Shard && m.subs[i][word(Shard, channel)]:
			want = append(want, "smessage "+channel+" m")
		case k == Channel:
			if m.subs[i][word(Channel, channel)] {
				want = append(want, "message "+channel+" m")
			}
			for _, p := range m.order {
				if m.subs[i][word(Pattern, p)] && glob.Match(p, channel) {
					want = append(want, "pmessage "+p+" "+channel+" m")
				}
			}
		}
		if got := c.take(); !slices.Equal(got, want) {
			t.Fatalf("publishing to %q: client %d got %q, want %q", channel, i, got, want)
		}
		n -= len(want)
	}
	if n != 0 {
		t.Fatalf("publishing to %q: the broker counts %d messages too many", channel, n)
	}
}

// The broker delivers what a walk over all subscriptions delivers, keeps its invariants,
// and releases all memory that it charged.
func TestTheBrokerDeliversAsAWalkOverAllSubscriptions(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{}
		m.broker.Init(&m.mem)
		for i := range 3 {
			m.clients = append(m.clients, &client{resp3: i == 0})
			m.subs = append(m.subs, map[string]bool{})
		}
		name := rapid.SampledFrom([]string{"", "a", "ab", "abc", "a*", "a?", "[ab]*", "*", `\a`})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i, k := rapid.IntRange(0, 2).Draw(t, "client"), Kind(rapid.IntRange(0, 2).Draw(t, "kind"))
			switch n := name.Draw(t, "name"); rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				m.leave(i)
			case 1, 2:
				m.unsubscribe(t, i, k, n)
			case 3, 4:
				m.publish(t, k&Shard, n) // to a channel or a shard channel
			default:
				m.subscribe(t, i, k, n)
			}
			if err := m.broker.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range m.clients {
			m.leave(i)
		}
		if m.mem.n != 0 || m.broker.Active() || m.broker.Sizes() != [3]int{} {
			t.Fatalf("when all clients have left, %d bytes and %v topics remain", m.mem.n, m.broker.Sizes())
		}
	})
}

// Many subscriptions are walked some at a time, and none is missed.
func TestLongListsAreWalkedInSlices(t *testing.T) {
	var b Broker
	mem := &memory{}
	b.Init(mem)
	c := &client{}
	var names []string
	for i := range 3*sliceSize + 7 {
		names = append(names, fmt.Sprintf("c%04d", i))
	}
	subscribe(&b, c, Channel, names...)
	if !slices.Equal(b.Names(c, Channel), names) || !slices.Equal(b.Channels(Channel, nil), names) {
		t.Error("a list of names differs from the subscriptions")
	}
	seen := 0
	if b.Any(c, func(Kind, string) bool { seen++; return false }) || seen != len(names) {
		t.Errorf("Any looked at %d of %d subscriptions", seen, len(names))
	}
	if !b.Any(c, func(_ Kind, name string) bool { return name == names[1] }) {
		t.Error("Any did not find a subscription")
	}
	b.Leave(c)
	if err := b.Check(); err != nil || b.Active() || mem.n != 0 || c.subs.Bytes() != 0 {
		t.Errorf("after Leave: %v, %d bytes", err, mem.n)
	}
}

func BenchmarkPublishToOneSubscriber(b *testing.B) {
	var broker Broker
	broker.Init(&memory{})
	c := &client{got: make([]byte, 0, 1<<10)}
	subscribe(&broker, c, Channel, "news")
	channel, msg := []byte("news"), []byte("hello")
	b.ReportAllocs()
	for b.Loop() {
		broker.Publish(Channel, channel, msg, false, nil)
		c.got = c.got[:0]
	}
}
