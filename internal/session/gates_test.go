package session

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
)

func gated(t *testing.T) *Service {
	t.Helper()
	var hooks Hooks
	db := engine.Open(engine.Options{Hooks: &hooks})
	s, err := NewService(Options{DB: db, Table: testTable}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); db.Close() })
	return s
}

func words(line string) (args [][]byte) {
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	return args
}

// A command may wait for its shards while the server becomes a replica, which holds them: its write would be
// in no stream, and its OK a lie.
func TestTheRoleIsLookedAtAgainBehindTheLocks(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{"SET k v", "-READONLY"}, {"GET k", "$-1"}, {"BLPOP k 0", "-READONLY"}, {"EVAL return(redis.call('incr','k')) 0", "-READONLY"},
	} {
		s := gated(t)
		x := s.NewSession(nil)
		args := words(c.request)
		spec, err := x.resolve(args)
		if err == nil {
			err = x.admit(spec, args)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.gates.set(gateReadOnly, true) // the command gets its shards only now
		x.execute(spec, args)
		if got := string(x.out.Buf); !strings.Contains(got, c.want[1:]) {
			t.Errorf("%s: %q", c.request, got)
		}
		if x.tx.Begun() {
			t.Errorf("%s: holds its shards", c.request)
		}
		x.Closed(nil)
	}
}

// The same for a transaction, which is refused as a whole.
func TestExecIsRefusedForWhatItRuns(t *testing.T) {
	s := gated(t)
	x := s.NewSession(nil)
	defer x.Closed(nil)
	for _, c := range []struct {
		gate    gate
		request string
		want    string
	}{
		{gateLoading, "GET k", "EXECABORT Transaction discarded because of: LOADING"},
		{gateLoading, "REPLICAOF NO ONE", "EXECABORT Transaction discarded because of: LOADING"},
		{gateLoading, "ROLE", ""},
		{gateStale, "GET k", "EXECABORT Transaction discarded because of: MASTERDOWN"},
		{gateStale, "REPLICAOF NO ONE", ""},
		{gateReadOnly, "SET k v", "EXECABORT Transaction discarded because of: READONLY"},
	} {
		x.Do(words("MULTI")...)
		x.Do(words(c.request)...)
		s.gates.set(c.gate, true)
		if v := x.Do(words("EXEC")...); !strings.HasPrefix(v.Str, c.want) || (c.want == "") != (v.Err() == nil) {
			t.Errorf("%s: %v", c.request, v)
		}
		s.gates.set(c.gate, false)
	}
}

// A client without an error would ask again at once, and stay connected to a server that is no longer the
// master.
func TestAnElectionThatCannotHappenIsAnError(t *testing.T) {
	s := gated(t)
	x, other := s.NewSession(nil), s.NewSession(nil)
	defer x.Closed(nil)
	defer other.Closed(nil)
	x.Do(words("SET old v PX 100000 FRESH 50000")...)
	x.Do(words("STALE old")...)
	token := x.Do(words("GETFRESH held LEASE 100000")...).Elems[2].String()
	for _, c := range []struct {
		gate gate
		want string
	}{{gateReadOnly, "READONLY"}, {gateNoReplicas, "NOREPLICAS"}, {gateGroup, "NOREPLICAS"}} {
		s.gates.set(c.gate, true)
		for _, request := range []string{"GETFRESH k LEASE 100", "GETFRESH k LEASE 100 OWNER me", "GETFRESH k LEASE 100 WAIT 1000",
			"GETFRESH held LEASE 100 TOKEN " + token} {
			if v := x.Do(words(request)...); !strings.HasPrefix(v.Str, c.want) || v.Err() == nil {
				t.Errorf("%s: %v, want %s", request, v, c.want)
			}
		}
		for request, want := range map[string]string{
			"GETFRESH k": "absent", "GETFRESH old LEASE 100": "stale", "GETFRESH held LEASE 100": "absent",
			"GETFRESH held LEASE 100 TOKEN 7": "absent",
		} {
			if v := other.Do(words(request)...); len(v.Elems) != 4 || v.Elems[0].Str != want {
				t.Errorf("%s with %s: %v, want %s", request, c.want, v, want)
			}
		}
		s.gates.set(c.gate, false)
	}
	x.Do(words("ACL SETUSER reader on nopass +@all %R~*")...)
	x.Do(words("AUTH reader pw")...)
	if v := x.Do(words("GETFRESH k LEASE 100")...); !strings.HasPrefix(v.Str, "NOPERM") {
		t.Errorf("without the right to write the key: %v", v)
	}
}
