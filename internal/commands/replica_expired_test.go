package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// These tests repeat faults that other servers published in 2026. A command names fields that exist on the
// master but are expired on the replica, whose clock is a minute ahead. If the replica applied the master's
// command like a client's, it would find no field, and its data would differ from the master's for good.

// pair is a master and a replica whose clock is ahead.
type pair struct {
	master, replica *node
}

func newPair(t *testing.T) *pair {
	late := clock.NewManual(transcript.Start)
	late.Advance(time.Minute)
	p := &pair{master: newNode(t, clock.NewManual(transcript.Start), true), replica: newNode(t, late, false)}
	p.replica.db.SetReplica(true)
	t.Cleanup(func() { p.master.close(); p.replica.close() })
	return p
}

// do has a client of the master send requests, and the replica apply their effects.
func (p *pair) do(t *testing.T, requests ...string) (last string) {
	t.Helper()
	for _, r := range requests {
		var words [][]byte
		for w := range strings.FieldsSeq(r) {
			words = append(words, []byte(w))
		}
		v := p.master.c.Do(words...)
		if err := v.Err(); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		last = history.Flat(v)
	}
	if err := p.replica.svc.Replay(p.master.db.Drain()); err != nil {
		t.Fatalf("the replica cannot apply %q: %v", requests, err)
	}
	if err := p.replica.db.Check(); err != nil {
		t.Fatal(err)
	}
	return last
}

func TestCommandsAboutFieldsThatAReplicaTakesForExpired(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string // prepare the hash h, whose field f is expired on the replica
		then   []string
		look   []string // requests with the same reply on master and replica
	}{
		{"HDEL", nil, []string{"HDEL h f"}, []string{"HLEN h", "HGET h f", "HGET h g"}},
		{"HDEL of the last field", []string{"HDEL h g"}, []string{"HDEL h f"}, []string{"EXISTS h", "TYPE h"}},
		{"HGETDEL", nil, []string{"HGETDEL h FIELDS 1 f"}, []string{"HLEN h", "HGET h f"}},
		{"HGETDEL of the last field", []string{"HDEL h g"}, []string{"HGETDEL h FIELDS 1 f"}, []string{"EXISTS h"}},
		{"HPERSIST", nil, []string{"HPERSIST h FIELDS 1 f"}, []string{"HGET h f", "HTTL h FIELDS 2 f g", "HLEN h"}},
		{"HEXPIRE", nil, []string{"HEXPIRE h 3600 FIELDS 1 f"}, []string{"HGET h f", "HPEXPIRETIME h FIELDS 2 f g", "HLEN h"}},
		{"HEXPIRE 0", nil, []string{"HEXPIRE h 0 FIELDS 1 f"}, []string{"HLEN h", "HGET h f"}},
		{"HPEXPIREAT of an expired field's last moment", nil, []string{"HPEXPIRE h 90000 GT FIELDS 1 f"},
			[]string{"HPEXPIRETIME h FIELDS 1 f", "HGET h f"}},
		{"HSETEX KEEPTTL", nil, []string{"HSETEX h KEEPTTL FIELDS 1 f 7", "HPERSIST h FIELDS 1 f"}, []string{"HGET h f", "HTTL h FIELDS 1 f"}},
		{"HINCRBYFLOAT keeps the deadline", []string{"HEXPIRE h 3600 FIELDS 1 f"}, []string{"HINCRBYFLOAT h f 0.5"},
			[]string{"HGET h f", "HPEXPIRETIME h FIELDS 1 f"}},
		{"HINCRBYFLOAT of a field that is past on the replica", nil, []string{"HINCRBYFLOAT h f 0.5", "HPERSIST h FIELDS 1 f"},
			[]string{"HGET h f", "HTTL h FIELDS 1 f"}},
		{"HINCRBY of a field that is past on the replica", nil, []string{"HINCRBY h f 5", "HPERSIST h FIELDS 1 f"},
			[]string{"HGET h f", "HTTL h FIELDS 1 f"}},
		// newNode lets a hash of more than three fields take its large form
		{"conversion", nil, []string{"HSET h x 1 y 2 z 3", "HPERSIST h FIELDS 1 f"}, []string{"HGET h f", "HGET h z",
			"HLEN h", "OBJECT ENCODING h",
			"HTTL h FIELDS 1 f"}},
		{"conversion by the length of a value", nil, []string{"HSET h x " + strings.Repeat("v", 100), "HPERSIST h FIELDS 1 f"},
			[]string{"HGET h f", "HLEN h", "OBJECT ENCODING h"}},
		{"conversion by a deadline of another field", nil, []string{"HSETEX h EX 3600 FIELDS 3 x 1 y 2 z 3", "HPERSIST h FIELDS 1 f"},
			[]string{"HGET h f", "HLEN h", "HPEXPIRETIME h FIELDS 2 x f"}},
		{"a copy", nil, []string{"COPY h h2", "HPERSIST h2 FIELDS 1 f"}, []string{"HGET h2 f", "HLEN h2"}},
		{"a key of another name", nil, []string{"RENAME h h2", "HPERSIST h2 FIELDS 1 f"}, []string{"HGET h2 f", "EXISTS h", "HLEN h2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			p.do(t, "HSET h f 1 g 2", "HPEXPIRE h 500 FIELDS 1 f")
			if got := p.replica.ask("HGET", "h", "f"); got != p.replica.ask("GET", "none") {
				t.Fatalf("the replica shows a field that is past: %s", got)
			}
			if len(c.before) > 0 {
				p.do(t, c.before...)
			}
			p.do(t, c.then...)
			for _, look := range c.look {
				words := strings.Fields(look)
				if m, r := p.master.ask(words...), p.replica.ask(words...); m != r {
					t.Errorf("%s: %s on the master, %s on the replica", look, m, r)
				}
			}
		})
	}
}

// The same faults are tested for members and elements, which have no deadlines in other servers.
func TestConversionsOfContainersWithItemsThatAReplicaTakesForExpired(t *testing.T) {
	for _, c := range []struct {
		fill, then string
		look       []string
	}{
		{"SADD k f g|SPEXPIRE k 500 MEMBERS 1 f", "SADD k x y z|SPERSIST k MEMBERS 1 f",
			[]string{"SISMEMBER k f", "SCARD k", "OBJECT ENCODING k"}},
		{"SADD k 1 2|SPEXPIRE k 500 MEMBERS 1 1", "SADD k word|SPERSIST k MEMBERS 1 1",
			[]string{"SISMEMBER k 1", "SCARD k", "OBJECT ENCODING k"}},
		{"ZADD k 1 f 2 g|ZPEXPIRE k 500 MEMBERS 1 f", "ZADD k 3 x 4 y 5 z|ZPERSIST k MEMBERS 1 f",
			[]string{"ZRANGE k 0 -1 WITHSCORES", "OBJECT ENCODING k"}},
		{"RPUSH k f g|LPEXPIRE k 500 INDEXES 1 0", "RPUSH k x y z w|LPERSIST k INDEXES 1 0", []string{"LRANGE k 0 -1", "OBJECT ENCODING k"}},
	} {
		t.Run(c.fill, func(t *testing.T) {
			p := newPair(t)
			p.do(t, strings.Split(c.fill, "|")...)
			p.do(t, strings.Split(c.then, "|")...)
			for _, look := range c.look {
				words := strings.Fields(look)
				if m, r := p.master.ask(words...), p.replica.ask(words...); m != r {
					t.Errorf("%s: %s on the master, %s on the replica", look, m, r)
				}
			}
		})
	}
}

// With a time in the past, MSETEX writes no key and deletes existing ones, on master and replica.
func TestMSETEXWithATimeInThePastLeavesNoKey(t *testing.T) {
	for _, past := range []string{"EXAT 1", "PXAT 1", fmt.Sprintf("PXAT %d", transcript.Start.UnixMilli()-1)} {
		t.Run(past, func(t *testing.T) {
			p := newPair(t)
			p.do(t, "SET a old", "HSET b f v", "MSETEX 3 a 1 b 2 c 3 "+past)
			for name, n := range map[string]*node{"master": p.master, "replica": p.replica} {
				if got := n.ask("EXISTS", "a", "b", "c"); got != n.ask("EXISTS", "none") {
					t.Errorf("the %s has %s of the three keys", name, got)
				}
				if got, none := n.ask("DBSIZE"), n.ask("EXISTS", "none"); got != none {
					t.Errorf("DBSIZE of the %s is %s", name, got)
				}
			}
			if got := p.do(t, "MSETEX 2 a 1 b 2 XX EX 10"); got != p.master.ask("EXISTS", "none") {
				t.Errorf("XX finds a key that MSETEX in the past has left: %s", got)
			}
		})
	}
}
