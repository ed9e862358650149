package ebbtest_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/resp"
)

func TestDataShowsWhatIsStored(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		d := b.Data
		for _, cmd := range [][]any{
			{"SET", "s", "text", "PX", 5000},
			{"HSET", "h", "f", 1, "g", "x"}, {"HPEXPIRE", "h", 700, "FIELDS", 1, "g"},
			{"RPUSH", "l", "b", "a", "b"},
			{"SADD", "set", "y", "x"}, {"SPEXPIRE", "set", 800, "MEMBERS", 1, "x"},
			{"ZADD", "z", 1.5, "one", 2, "two"},
			{"XADD", "x", "1-1", "k", "v"},
			{"DQ.ADD", "q", "later", "p", "DELAY", 1000}, {"DQ.ADD", "q", "now", "p"},
			{"LOCK.ACQUIRE", "lock", "worker-1", 9000},
		} {
			d.Do(cmd...)
		}
		owner, token := d.LockOwner("lock")
		got := []any{d.Get("s"), d.TTL("s"), d.TTL("h"), d.TTL("nothing"), d.Get("nothing"),
			d.Hash("h"), d.FieldTTL("h", "g"), d.FieldTTL("h", "f"), d.FieldTTL("h", "none"),
			d.List("l"), d.Set("set"), d.MemberTTL("set", "x"), d.MemberTTL("z", "one"),
			d.SortedSet("z"), d.Stream("x"), d.Jobs("q"), owner, token > 0, d.Type("z"), d.Exists("z"), d.Exists("nothing"), d.Keys()}
		want := []any{"text", 5 * time.Second, ebb.Forever, time.Duration(0), "",
			map[string]string{"f": "1", "g": "x"}, 700 * time.Millisecond, ebb.Forever, time.Duration(0),
			[]string{"b", "a", "b"}, []string{"x", "y"}, 800 * time.Millisecond, ebb.Forever,
			map[string]float64{"one": 1.5, "two": 2}, []ebbtest.Entry{{ID: "1-1", Fields: []string{"k", "v"}}}, []string{"now", "later"}, "worker-1",
			true, "zset", true, false,
			[]string{"h", "l", "lock", "q", "s", "set", "x", "z"}}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("%d: got %#v, want %#v", i, got[i], want[i])
			}
		}
		dump := `h (hash)
  "f": "1"
  "g": "x"
l (list)
  "b"
  "a"
  "b"
lock (lock, 9s)
q (delayqueue)
s (string, 5s)
  "text"
set (set)
  "x"
  "y"
x (stream)
  1-1 ["k" "v"]
z (zset)
  1.5 "one"
  2 "two"
`
		if got := d.Dump(); got != dump {
			t.Errorf("the dump is\n%s\nwant\n%s", got, dump)
		}
	})
}

func TestDataOfOtherDatabases(t *testing.T) {
	ctx := context.Background()
	b := ebbtest.Run(t)
	must(t, b.Set(ctx, "k", "zero"))
	b.Data.DB(3).Do("SET", "k", "three")
	if a, c := b.Data.Get("k"), b.Data.DB(3).Get("k"); a != "zero" || c != "three" {
		t.Errorf("%q and %q", a, c)
	}
	if keys := b.Data.DB(4).Keys(); len(keys) != 0 {
		t.Errorf("database 4 has %q", keys)
	}
}

func TestDataSeesNoFaults(t *testing.T) {
	b := ebbtest.Run(t)
	b.Data.Do("SET", "k", "v")
	b.SetError("LOADING not yet")
	b.Stop()
	if v := b.Data.Get("k"); v != "v" {
		t.Errorf("%q", v)
	}
}

func TestOtherDatabasesTakeWhatTheConnTakes(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		for _, d := range []*ebbtest.Data{b.Data, b.Data.DB(3)} {
			d.Do("SET", "k", []byte("bytes"))
			d.Do("HSET", "h", "f", true)
			if got := d.Get("k") + d.Hash("h")["f"]; got != "bytes1" {
				t.Errorf("%q", got)
			}
			if v := d.Do("HGETALL", "h"); v.Kind != resp.KindMap {
				t.Errorf("%v: %v", v.Kind, v)
			}
		}
	})
}
