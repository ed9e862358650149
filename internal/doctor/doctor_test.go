package doctor

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/resp"
)

// now is the time of all tests.
var now = time.Unix(1_800_000_000, 0)

// first returns the first finding of a check with some facts.
func first(check func(*facts) []Finding, info, config map[string]string) Finding {
	f := &facts{info: info, config: config, product: "redis", Options: Options{Clock: func() time.Time { return now }}}
	if found := check(f); len(found) > 0 {
		return found[0]
	}
	return Finding{}
}

func TestChecksGrade(t *testing.T) {
	type m = map[string]string
	for _, x := range []struct {
		check        func(*facts) []Finding
		info, config m
		grade        Grade
		what         string
	}{
		{memory, m{"used_memory": "100", "maxmemory": "0"}, nil, Look, "maxmemory is 0"},
		{memory, m{"used_memory": "95", "maxmemory": "100", "maxmemory_policy": "noeviction"}, nil, Act, "95 %"},
		{memory, m{"used_memory": "50", "maxmemory": "100", "maxmemory_policy": "noeviction"}, nil, OK, "50 %"},
		{memory, m{"used_memory": "50", "maxmemory": "100", "maxmemory_policy": "allkeys-lru", "evicted_keys": "7"}, nil,
			Look, "7 keys were evicted"},
		{memory, m{"used_memory": "50", "maxmemory": "100", "total_system_memory": "80"}, nil, Act, "on a machine of 80 B"},
		{evictable, m{"db0": "keys=10,expires=0,avg_ttl=0", "db3": "keys=5,expires=0", "maxmemory_policy": "volatile-ttl", "maxmemory": "100"},
			nil, Act, "15 keys"},
		{evictable, m{"db0": "keys=10,expires=0", "maxmemory_policy": "volatile-ttl", "maxmemory": "0"}, nil, Look, "volatile-ttl"},
		{evictable, m{"db0": "keys=10,expires=4"}, nil, OK, "40 %"},
		{fragmentation, m{"mem_fragmentation_ratio": "2.1", "used_memory": "1000000000"}, nil, Look, "2.1 times"},
		{snapshots, m{"rdb_last_bgsave_status": "err"}, m{"save": "60 1"}, Act, "the last snapshot failed"},
		{snapshots, m{"rdb_last_bgsave_status": "ok", "rdb_changes_since_last_save": "9", "rdb_last_save_time": "1799000000"},
			m{"save": "9999999 1"}, Look, "9 changes"},
		{appendOnly, m{"aof_enabled": "1", "aof_last_write_status": "err"}, nil, Act, "writing the append-only file failed"},
		{appendOnly, m{"aof_enabled": "1", "aof_delayed_fsync": "3"}, nil, Look, "3 fsyncs"},
		{appendOnly, m{"aof_enabled": "1", "aof_last_bgrewrite_status": "err"}, nil, Act, "the last rewrite"},
		{expiry, m{"expired_stale_perc": "31"}, nil, Look, "31 %"},
		{replicas, m{"role": "master", "connected_slaves": "1", "slave0": "ip=10.0.0.2,port=6379,state=online,offset=1,lag=99"},
			nil, Act, "10.0.0.2:6379 (online, lag 99 s)"},
		{replicas, m{"role": "master", "connected_slaves": "1", "slave0": "ip=10.0.0.2,port=6379,state=online,offset=1,lag=1"},
			nil, OK, "1 replicas follow"},
		{replicas, m{"role": "master"}, m{"min-replicas-to-write": "1"}, Act, "min-replicas-to-write is 1"},
		{replicas, m{"role": "master", "connected_slaves": "1", "slave0": "ip=h,port=1,state=online,lag=0", "min_slaves_good_slaves": "1"},
			m{"min-replicas-to-write": "2"}, Act, "1 replicas follow in time, and min-replicas-to-write is 2"},
		{replicas, m{"role": "master", "connected_slaves": "1", "slave0": "ip=h,port=1,state=send_bulk,lag=0"}, nil, Look, "h:1 (send_bulk"},
		{master, m{"role": "slave", "master_host": "h", "master_port": "1", "master_link_status": "down", "master_sync_in_progress": "1"},
			nil, Look, "is on its way"},
		{master, m{"role": "slave", "master_host": "h", "master_port": "1", "master_link_status": "down",
			"master_link_last_error": "refused"}, nil, Act, "(refused)"},
		{master, m{"role": "slave", "master_host": "h", "master_port": "1", "master_link_status": "down",
			"master_link_down_since_seconds": "5"}, nil, Act, "since 5 s"},
		{clients, m{"connected_clients": "90", "maxclients": "100"}, nil, Act, "90 of 100"},
		{refused, m{"rejected_connections": "4"}, nil, Look, "4 connections"},
		{keysCommand, m{"cmdstat_keys": "calls=12,usec=1", "db0": "keys=20000,expires=0"}, nil, Look, "calls of KEYS since the start: 12"},
	} {
		got := first(x.check, x.info, x.config)
		if got.Grade != x.grade || !strings.Contains(got.What, x.what) || got.Grade != OK && (got.Why == "" || got.Fix+got.How == "") {
			t.Errorf("%v: %+v, want %s with %q", x.info, got, x.grade, x.what)
		}
	}
}

func TestACertificateThatEndsSoonIsNamed(t *testing.T) {
	for days, want := range map[int]Grade{400: OK, 20: Look, 3: Act, -1: Act} {
		f := &facts{Options: Options{Clock: func() time.Time { return now },
			Certificates: []*x509.Certificate{{NotAfter: now.Add(time.Duration(days) * 24 * time.Hour)}}}}
		if got := certificate(f)[0]; got.Grade != want {
			t.Errorf("%d days: %+v", days, got)
		}
	}
}

func TestTheKernelIsForServersOfThisMachine(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
		"proc/sys/vm/overcommit_memory": "0\n", "proc/sys/net/core/somaxconn": "128\n"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := &facts{Options: Options{Root: root, Local: true}, product: "valkey", config: map[string]string{"tcp-backlog": "511"}}
	if found := kernel(f); len(found) != 3 {
		t.Errorf("%+v", found)
	}
	f.product = "ebb"
	if found := kernel(f); len(found) != 1 || !strings.Contains(found[0].What, "somaxconn") {
		t.Errorf("ebb does not fork: %+v", found)
	}
	f.Local = false
	if found := kernel(f); found != nil {
		t.Errorf("another machine's: %+v", found)
	}
}

func TestTheDiskHasSpaceForASecondCopy(t *testing.T) {
	for _, x := range []struct {
		free  int64
		err   error
		local bool
		save  string
		want  string // "" for no finding
	}{
		{5 << 30, nil, true, "60 1", "ok /data has 5.0 GB free, and the data takes 1.0 GB"},
		{1500 << 20, nil, true, "60 1", "look /data has 1.5 GB free, and the data takes 1.0 GB"},
		{500 << 20, nil, true, "60 1", "act /data has 500.0 MB free, and the data takes 1.0 GB"},
		{1, nil, false, "60 1", ""},
		{1, nil, true, "", ""}, // nothing is written
		{-1, nil, true, "60 1", ""},
		{0, os.ErrNotExist, true, "60 1", ""},
	} {
		f := &facts{info: map[string]string{"used_memory": "1073741824"}, config: map[string]string{"dir": "/data", "save": x.save},
			Options: Options{Local: x.local, Root: "/root", Free: func(dir string) (int64, error) {
				if dir != filepath.Join("/root", "data") {
					t.Errorf("asked for %s", dir)
				}
				return x.free, x.err
			}}}
		got := ""
		if found := space(f); len(found) == 1 {
			got = found[0].Grade.String() + " " + found[0].What
		}
		if got != x.want {
			t.Errorf("%d free, %v, local %v, save %q: %q, want %q", x.free, x.err, x.local, x.save, got, x.want)
		}
	}
}

func TestTheLimitOfOpenFilesIsThatOfTheServersProcess(t *testing.T) {
	for _, x := range []struct {
		comm, limit string
		clients     string
		want        string // "" for no finding
	}{
		{"redis-server", "65536", "10000", "ok 65536 files may be open"},
		{"ebb", "10031", "10000", "act the limit of open files is 10031, and maxclients 10000"},
		{"valkey-server", "1024", "900", "look the limit of open files is 1024"},
		{"init", "1024", "10000", ""}, // the number is that of a container
		{"ebb", "unlimited", "10000", ""},
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "proc", "77")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		limits := "Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max processes             95870                95870                processes \n" +
			"Max open files            " + x.limit + "                524288               files     \n"
		for name, text := range map[string]string{"comm": x.comm + "\n", "limits": limits} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f := &facts{info: map[string]string{"process_id": "77"}, config: map[string]string{"maxclients": x.clients},
			Options: Options{Local: true, Root: root}}
		got := ""
		if found := descriptors(f); len(found) == 1 {
			got = found[0].Grade.String() + " " + found[0].What
		}
		if got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
		if f.Local = false; len(descriptors(f)) != 0 {
			t.Errorf("%+v: a finding about another machine", x)
		}
	}
}

func TestTheLargestSecondOfASurvey(t *testing.T) {
	list := func(of ...conn.Value) conn.Value { return conn.Value{Elems: of} }
	text := func(s string) conn.Value { return conn.Value{Kind: resp.KindBulk, Str: s} }
	n := func(i int64) conn.Value { return conn.Value{Int: i} }
	survey := []conn.Value{text("at"), n(1), text("keys"), list(text("due"), n(0), text("seconds"), list(n(3), n(70), n(5)))}
	if got := largestSecond(survey); got != 70 {
		t.Errorf("%d", got)
	}
}

// The letters are those that CONFIG SET takes, and with them the subscribers get their events.
func TestEventsThatAreMissing(t *testing.T) {
	for _, x := range []struct {
		set, channels, want string
	}{
		{"", "__keyevent@0__:expired", "Ex"}, {"", "__keyspace@0__:foo", "KA"}, {"Ex", "__keyspace@0__:foo", "K"},
		{"Ex", "__keyevent@0__:expired", ""}, {"AE", "__keyevent@0__:expired", ""}, {"Kx", "__keyevent@0__:expired", "E"},
		{"E$", "__keyevent@0__:expired", "x"}, {"", "__keyevent@0__:set", "EA"},
		{"", "__keyevent@0__:expired __keyspace@0__:foo", "ExK"}, {"", "__key", ""},
	} {
		if got := missingEvents(x.set, strings.Fields(x.channels)); got != x.want {
			t.Errorf("%q, %s: %q, want %q", x.set, x.channels, got, x.want)
		}
	}
}

func TestAFixIsWrittenToTheFileIfThereIsOne(t *testing.T) {
	for file, want := range map[string]string{
		"":                "CONFIG SET a b, there is no configuration file",
		"/etc/redis.conf": "CONFIG SET a b; CONFIG REWRITE, ",
	} {
		f := &facts{info: map[string]string{"config_file": file}}
		if fix, how := f.lasting("CONFIG SET a b"); !strings.HasPrefix(fix+", "+how, want) {
			t.Errorf("%q: %s, %s", file, fix, how)
		}
	}
}

func TestLateRemovalsAreNamedWhereThereAreEnough(t *testing.T) {
	for _, x := range []struct {
		count, p99 string
		want       Grade
	}{{"999", "900000", OK}, {"1000", "16384", OK}, {"1000", "20000", Look}} {
		f := &facts{product: "ebb", lost: errors.New("asks nothing"),
			info: map[string]string{"expiry_lag_count": x.count, "expiry_lag_p99_us": x.p99}}
		if got := expiry(f)[0]; got.Grade != x.want || x.want == Look && !strings.Contains(got.What, "more than 20 ms") {
			t.Errorf("%+v: %+v", x, got)
		}
	}
}

func TestNamesOfLimiters(t *testing.T) {
	for name, want := range map[string]bool{"limit:ann": true, "api:ratelimit:7": true, "RateLimiter:x": true, "unlimited": false,
		"limits": true, "slimit:1": false} {
		if got := limiterName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
