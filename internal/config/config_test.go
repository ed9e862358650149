package config

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestGetMatchesPatternsAndAliases(t *testing.T) {
	s := New()
	for _, x := range []struct {
		patterns string
		want     string
	}{
		{"maxmemory", "maxmemory 0"},
		{"MaxMemory", "MaxMemory 0"},
		{"maxmemory MAXMEMORY", "maxmemory 0"},
		{"nope", ""},
		{"timeout hz nope", "hz 10 timeout 0"},
		{"[s]lave-prio* MAXMEMORY-PO*", "maxmemory-policy noeviction slave-priority 100"},
		{"zset-max-*-entries", "zset-max-listpack-entries 128 zset-max-ziplist-entries 128"},
		{"key-load*", ""},
		{"key-load-delay", "key-load-delay 0"},
	} {
		if got := strings.Join(s.Get(strings.Fields(x.patterns)...), " "); got != x.want {
			t.Errorf("Get(%s) = %q, want %q", x.patterns, got, x.want)
		}
	}
}

func TestEveryDirectiveHasAValueThatReadsBack(t *testing.T) {
	s := New()
	if got := s.Get("*"); len(got) != 2*272 {
		t.Errorf("Get(*) lists %d names", len(got)/2)
	}
	for _, d := range Directives() {
		for _, v := range []Value{d.initial, d.fileInitial} {
			if v.Text != d.Default && v.Text != d.FileDefault {
				t.Errorf("%s: the default %q reads back as %q", d.Name, d.Default, v.Text)
			}
			lines := strings.Join(d.lines(v), "\n")
			again := New()
			if err := again.Parse(strings.NewReader(lines), "lines"); d.Kind == Directory {
				continue
			} else if err != nil {
				t.Errorf("%s: %v", d.Name, err)
			} else if got := again.load(d).Text; got != v.Text {
				t.Errorf("%s: %q is written as %q, which reads as %q", d.Name, v.Text, lines, got)
			}
		}
	}
}

func TestChangeAnswersAsRedisDoes(t *testing.T) {
	const failed = "ERR CONFIG SET failed (possibly related to argument "
	for _, x := range []struct {
		pairs []string
		want  string // the error, or name and value in turn
	}{
		{[]string{"maxmemory", "100mb"}, "maxmemory 104857600"},
		{[]string{"MAXMEMORY", "1Gb", "timeout", "5"}, "maxmemory 1073741824 timeout 5"},
		{[]string{"slave-priority", "7"}, "replica-priority 7 slave-priority 7"},
		{[]string{"slave-priority", "1", "replica-priority", "2"}, "replica-priority 2"},
		{[]string{"hz", "1000"}, "hz 500"},
		{[]string{"repl-backlog-size", "1"}, "repl-backlog-size 16384"},
		{[]string{"maxmemory-clients", "5%"}, "maxmemory-clients 5%"},
		{[]string{"maxmemory-clients", "0%"}, "maxmemory-clients 0"},
		{[]string{"notify-keyspace-events", "mnKl"}, "notify-keyspace-events lnKm"},
		{[]string{"notify-keyspace-events", "KEA"}, "notify-keyspace-events AKE"},
		{[]string{"shutdown-on-sigint", "default force NOW"}, "shutdown-on-sigint now force"},
		{[]string{"client-output-buffer-limit", "replica 1k 2kb 3"},
			"client-output-buffer-limit normal 0 0 0 slave 1000 2048 3 pubsub 33554432 8388608 60"},
		{[]string{"save", "60 1 01 +2"}, "save 60 1 1 2"},
		{[]string{"bind", ""}, "bind "},
		{[]string{"latency-tracking-info-percentiles", "1e1 -0 33.3333333333 1e-5"}, "latency-tracking-info-percentiles 10 -0 33.333333 0.00001"},

		{[]string{"a", "1", "b"}, "ERR syntax error"},
		{[]string{"nope", "1"}, "ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{[]string{"maxmemory", "x", "nope", "1"}, "ERR Unknown option or number of arguments for CONFIG SET - 'nope'"},
		{[]string{"daemonize", "yes", "nope", "1"}, failed + "'daemonize') - can't set immutable config"},
		{[]string{"dir", "/"}, failed + "'dir') - can't set protected config"},
		{[]string{"maxmemory", "1", "MaxMemory", "2"}, failed + "'MaxMemory') - duplicate parameter"},
		{[]string{"maxmemory", "1", "maxmemory-policy", "zz"},
			failed + "'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, " +
				"allkeys-lru, allkeys-lfu, allkeys-random, noeviction"},
		{[]string{"maxmemory", "1.5mb"}, failed + "'maxmemory') - argument must be a memory value"},
		{[]string{"maxmemory", "99999999999999999gb"}, "maxmemory 18446744073709551615"},
		{[]string{"proto-max-bulk-len", "99999999999999999gb"},
			failed + "'proto-max-bulk-len') - argument must be between 1048576 and 9223372036854775807 inclusive"},
		{[]string{"maxmemory", "k"}, failed + "'maxmemory') - argument must be a memory value"},
		{[]string{"slave-priority", "zz"}, failed + "'slave-priority') - argument couldn't be parsed into an integer"},
		{[]string{"timeout", "05"}, failed + "'timeout') - argument couldn't be parsed into an integer"},
		{[]string{"timeout", "-1"}, failed + "'timeout') - argument must be between 0 and 2147483647 inclusive"},
		{[]string{"proto-max-bulk-len", "1"}, failed + "'proto-max-bulk-len') - argument must be between 1048576 and " +
			"9223372036854775807 inclusive"},
		{[]string{"appendonly", "on"}, failed + "'appendonly') - argument must be 'yes' or 'no'"},
		{[]string{"save", "60 9999999999"}, failed + "'save') - Invalid save parameters"},
	} {
		s := New()
		before := s.Get("*")
		if err := s.Change(true, x.pairs...); err != nil {
			if err.Error() != x.want {
				t.Errorf("%q: %v, want %s", x.pairs, err, x.want)
			}
			if !slices.Equal(before, s.Get("*")) {
				t.Errorf("%q changed something although it failed", x.pairs)
			}
			continue
		}
		for i := 0; i < len(x.pairs); i += 2 {
			name := Lookup(x.pairs[i]).Name
			if got := name + " " + s.String(name); !strings.Contains(x.want+" ", got+" ") {
				t.Errorf("%q gives %q, want %q", x.pairs, got, x.want)
			}
		}
	}
}

func TestGettersFollowAChange(t *testing.T) {
	s := New()
	err := s.Change(false, "maxmemory", "1000", "maxmemory-clients", "5%", "maxmemory-policy", "allkeys-lfu", "timeout", "9",
		"notify-keyspace-events", "Kg$", "requirepass", "secret", "client-output-buffer-limit", "pubsub 3 2 1",
		"hash-max-ziplist-entries", "77", "protected-mode", "no")
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxMemory() != 1000 || s.MaxMemoryClients() != 50 || !s.MaxMemoryPolicy().LFU() || s.Timeout() != 9 ||
		s.Events() != EventKeyspace|EventGeneric|EventString ||
		s.RequirePass() != "secret" || s.OutputLimit(PubSub) != (OutputLimit{3, 2, 1}) || s.HashMaxListpackEntries() != 77 || s.ProtectedMode() {
		t.Error("a getter still has the old value")
	}
	if err := s.Change(false, "maxmemory", "18446744073709551615"); err != nil || s.MaxMemory() != 1<<63-1 {
		t.Errorf("the largest bound: %v, %d", err, s.MaxMemory())
	}
}

func TestAHookSeesTheNewValuesOncePerChange(t *testing.T) {
	s := New()
	var seen []string
	s.OnChange(func(s *Set) error {
		seen = append(seen, s.String("tls-cert-file")+" "+s.String("tls-key-file"))
		return nil
	}, "tls-cert-file", "tls-key-file")
	_ = s.Change(false, "tls-cert-file", "c", "timeout", "1", "tls-key-file", "k")
	_ = s.Change(false, "tls-cert-file", "c", "timeout", "2")
	if !slices.Equal(seen, []string{"c k"}) {
		t.Errorf("the hook saw %q", seen)
	}
}

func TestARefusingHookUndoesTheWholeChange(t *testing.T) {
	s := New()
	var timeouts []int64
	s.OnChange(func(s *Set) error { timeouts = append(timeouts, s.Timeout()); return nil }, "timeout")
	s.OnChange(func(s *Set) error {
		if s.Int("port") != 6379 {
			return errors.New("Unable to listen on this port. Check server logs.")
		}
		return nil
	}, "port")
	err := s.Change(false, "timeout", "5", "maxclients", "3", "port", "1")
	if err == nil || err.Error() != "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on "+
		"this port. Check server logs." {
		t.Error(err)
	}
	if got := strings.Join(s.Get("timeout", "maxclients", "port"), " "); got != "maxclients 10000 port 6379 timeout 0" {
		t.Error(got)
	}
	if !slices.Equal(timeouts, []int64{5, 0}) {
		t.Errorf("the accepting hook saw %d", timeouts)
	}
}

func TestProtectedDirectivesOpenToTheClientsThatTheFileAllows(t *testing.T) {
	for _, x := range []struct {
		allow          string
		local, allowed bool
	}{{"no", true, false}, {"local", true, true}, {"local", false, false}, {"yes", false, true}} {
		s := New()
		if err := s.ParseArgs([]string{"--enable-protected-configs", x.allow}); err != nil {
			t.Fatal(err)
		}
		if err := s.Change(x.local, "dbfilename", "x.rdb"); (err == nil) != x.allowed || err != nil && !errors.Is(err, ErrProtected) {
			t.Errorf("%s, local %v: %v", x.allow, x.local, err)
		}
	}
}

func TestReadersNeedNoLockWhileValuesChange(t *testing.T) {
	s := New()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if l := s.OutputLimit(Normal); l.Hard != l.Soft {
					t.Errorf("a torn limit: %+v", l)
				}
				_, _ = s.MaxMemory(), s.Get("max*")
			}
		})
	}
	for range 200 {
		_ = s.Change(false, "client-output-buffer-limit", "normal 1 1 1", "maxmemory", "1")
		_ = s.Change(false, "client-output-buffer-limit", "normal 2 2 1", "maxmemory", "2")
	}
	close(stop)
	readers.Wait()
}

func TestSettingsSayWhatHasChanged(t *testing.T) {
	s := New()
	if err := s.ParseArgs([]string{"--timeout", "9", "--requirepass", "x"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Change(false, "maxclients", "77"); err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, d := range s.Settings() {
		if d.Changed() {
			changed = append(changed, d.Name+" "+d.Initial+" "+d.Value+" "+d.Where)
		}
	}
	want := []string{"maxclients 10000 77 ", "requirepass  x command line", "timeout 0 9 command line"}
	if !slices.Equal(changed, want) {
		t.Errorf("%q, want %q", changed, want)
	}
}
