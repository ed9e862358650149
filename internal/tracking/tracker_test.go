package tracking

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// client is a Client that keeps its messages.
type client struct {
	id                int64
	resp2, subscribed bool
	unreadable        string
	state             State
	got               []byte
}

func (c *client) ID() int64        { return c.id }
func (c *client) Push(msg []byte)  { c.got = append(c.got, msg...) }
func (c *client) RESP3() bool      { return !c.resp2 }
func (c *client) Subscribed() bool { return c.subscribed }
func (c *client) Tracking() *State { return &c.state }
func (c *client) Readable(keys [][]byte) [][]byte {
	return slices.DeleteFunc(slices.Clone(keys), func(k []byte) bool { return string(k) == c.unreadable })
}

// take returns the messages since the last call.
func (c *client) take() (all []string) {
	r := bufio.NewReader(bytes.NewReader(c.got))
	for {
		v, err := wire.ReadValue(r)
		if err != nil {
			c.got = nil
			return all
		}
		var words []string
		for _, e := range v.Elems {
			switch {
			case e.Kind == resp.KindInt:
				words = append(words, fmt.Sprint(e.Int))
			case e.Elems == nil:
				words = append(words, e.Str)
			}
			for _, k := range e.Elems {
				words = append(words, k.Str)
			}
		}
		all = append(all, strings.Join(words, " "))
	}
}

// server is an engine with a tracker, and the Host of its clients.
type server struct {
	Tracker
	db      *engine.DB
	clients map[int64]*client
}

// Event, Modified and Flushed make a server the engine's hooks.
func (s *server) Event(*engine.Tx, uint32, string, []byte) {}
func (s *server) Flushed(*engine.Tx, int)                  { s.Tracker.Flushed() }

func (s *server) Client(id int64) Client {
	if c := s.clients[id]; c != nil {
		return c
	}
	return nil
}

func (s *server) Clients() (all []Client) {
	for _, c := range s.clients {
		all = append(all, c)
	}
	return all
}

func newServer(t *testing.T) *server {
	s := &server{clients: map[int64]*client{}}
	s.db = engine.Open(engine.Options{Clock: clock.NewManual(time.Unix(1e9, 0)), Hooks: s})
	t.Cleanup(func() { s.db.Close() })
	s.Init(s.db, s)
	return s
}

func (s *server) join(id int64, m *Mode) *client {
	c := &client{id: id}
	s.clients[id] = c
	if m != nil {
		s.Start(c, m)
	}
	return c
}

// read has a client read a key, as a command does that locks the key's shard.
func (s *server) read(c *client, key string) {
	tx := s.db.NewTx()
	tx.Lock(0, [][]byte{[]byte(key)})
	s.Read(tx, c, []byte(key))
	tx.Unlock()
}

func (s *server) set(t *testing.T, keys ...string) {
	for _, k := range keys {
		tx := s.db.Begin(0, []byte(k))
		_, _, err := tx.Set([]byte(k), []byte("v"), engine.SetOptions{}, nil)
		tx.Commit()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, who string, c *client, want ...string) {
	t.Helper()
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("%s got %q, want %q", who, got, want)
	}
}

// A client gets one invalidation for a key that it has read, and another one only after
// another read.
func TestAChangedKeyIsInvalidatedOnceForItsReaders(t *testing.T) {
	s := newServer(t)
	a, b, other := s.join(1, &Mode{}), s.join(2, &Mode{}), s.join(3, &Mode{})
	s.read(a, "k")
	s.read(b, "k")
	s.read(a, "k")
	s.read(other, "l")
	if _, keys, items, _ := s.Sizes(); keys != 2 || items != 3 {
		t.Errorf("the table has %d keys with %d ids, want 2 with 3", keys, items)
	}
	s.set(t, "k", "k")
	expect(t, "a", a, "invalidate k")
	expect(t, "b", b, "invalidate k")
	expect(t, "other", other)
}

// Redirected messages go to another client, which in RESP2 must be subscribed; once that
// client is gone, the first one gets a message.
func TestMessagesAreRedirectedUntilTheOtherClientIsGone(t *testing.T) {
	s := newServer(t)
	to := s.join(7, nil)
	to.resp2 = true
	c := s.join(1, &Mode{Redirect: 7})
	s.read(c, "k")
	s.set(t, "k")
	expect(t, "the client that is not subscribed", to)
	to.subscribed = true
	s.read(c, "k")
	s.set(t, "k")
	expect(t, "the other client", to, "message "+InvalidateChannel+" k")
	delete(s.clients, 7)
	s.read(c, "k")
	s.set(t, "k")
	expect(t, "the client", c, "tracking-redir-broken 7")
	if !c.state.Broken() {
		t.Error("the redirection does not count as broken")
	}
}

// A client that tracks by prefix gets the changed keys that it may read, without reading
// them first.
func TestPrefixesAreBroadcastToClientsThatMayReadTheKeys(t *testing.T) {
	s := newServer(t)
	c := s.join(1, &Mode{BCast: true, Prefixes: []string{"a:", "b:"}})
	c.unreadable = "a:2"
	s.set(t, "a:1", "a:2", "b:1", "c:1")
	expect(t, "the client", c, "invalidate a:1", "invalidate b:1")
	s.Stop(c)
	s.set(t, "a:1")
	expect(t, "the client without tracking", c)
}

// Without a client that tracks there is no table, and all memory is given back.
func TestTheTableGoesWithItsLastClient(t *testing.T) {
	s := newServer(t)
	c, p := s.join(1, &Mode{}), s.join(2, &Mode{BCast: true, Prefixes: []string{"x"}})
	for i := range 100 {
		s.read(c, fmt.Sprint("k", i))
	}
	if s.db.Charged() <= 0 {
		t.Error("the table counts as no memory")
	}
	s.Stop(c)
	s.Stop(p)
	if s.Active() || s.db.Charged() != 0 {
		t.Errorf("active: %v; %d bytes remain", s.Active(), s.db.Charged())
	}
}

func TestOptionsThatExcludeEachOtherAreRefused(t *testing.T) {
	bcast := &Mode{BCast: true}
	s := newServer(t)
	had := s.join(1, &Mode{BCast: true, Prefixes: []string{"ab"}})
	for _, x := range []struct {
		m, old *Mode
		want   string // part of the error; "": none
	}{
		{&Mode{Prefixes: []string{"a"}}, nil, "PREFIX option requires BCAST"},
		{&Mode{}, bcast, "switch BCAST mode"},
		{&Mode{BCast: true, OptIn: true}, nil, "not compatible with BCAST"},
		{&Mode{OptIn: true, OptOut: true}, nil, "both OPTIN mode and OPTOUT"},
		{&Mode{OptIn: true}, &Mode{OptOut: true}, "switch OPTIN/OPTOUT"},
		{&Mode{BCast: true, Prefixes: []string{"a"}}, had.state.Mode(), "an existing prefix 'ab'"},
		{&Mode{BCast: true, Prefixes: []string{"x", "y", "xy"}}, nil, "another provided prefix 'xy'"},
		{&Mode{BCast: true, Prefixes: []string{"ac"}}, had.state.Mode(), ""},
	} {
		err := x.m.Check(x.old)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v with %+v: %v, want %q", x.m, x.old, err, x.want)
		}
	}
}
