package config

import (
	"bufio"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// oracle is a connection to a real redis-server.
type oracle struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func newOracle(t *testing.T, program string) *oracle {
	conn, err := net.Dial("tcp", realserver.Start(t, program))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &oracle{t, conn, bufio.NewReader(conn)}
}

func (o *oracle) do(args ...string) resp.Value {
	o.t.Helper()
	if _, err := o.conn.Write(wire.AppendCommand(nil, args...)); err != nil {
		o.t.Fatal(err)
	}
	v, err := wire.ReadValue(o.r)
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// get is CONFIG GET as a map.
func (o *oracle) get(pattern string) map[string]string {
	v := o.do("CONFIG", "GET", pattern)
	m := make(map[string]string)
	for i := 0; i+1 < len(v.Elems); i += 2 {
		m[v.Elems[i].Str] = v.Elems[i+1].Str
	}
	return m
}

// otherDefaults are the directives whose default is not Redis 7.0's, and why.
var otherDefaults = map[string]string{
	"io-threads": "an alias of io-loops, where 0 is one per processor",
	"port":       "the oracle has its own",
	"dir":        "the oracle has its own",
	"bind":       "the oracle has its own; without a file ebb listens on loopback",
	"save":       "the oracle saves nothing",
}

// ours are the names that Redis 7.0 does not have.
var ours = map[string]string{
	"shards": "ebb's own", "script-memory-limit": "ebb's own", "io-loops": "ebb's own",
	"maxmemory-protect": "ebb's own", "maxmemory-protect-limiters": "ebb's own",
	"group": "ebb's own", "group-port": "ebb's own", "group-name": "ebb's own", "group-timeout": "ebb's own", "sentinel-port": "ebb's own",
	"min-sync-replicas": "ebb's own", "sync-level": "ebb's own", "sync-lease": "ebb's own", "sync-lag": "ebb's own", "sync-reads": "ebb's own",
	"sync-timeout": "ebb's own", "sync-held-max": "ebb's own", "max-clock-ahead": "ebb's own", "http": "ebb's own", "http-pprof": "ebb's own",
	"http-console": "ebb's own", "http-console-read-only": "ebb's own", "http-console-values": "ebb's own", "http-console-label": "ebb's own",
	"http-hosts": "ebb's own", "http-tls": "ebb's own",
	"hotkey-top-k": "Valkey 9.2's", "hotkey-window-seconds": "Valkey 9.2's", "hotkey-sampling-percentage": "Valkey 9.2's",
}

// knownTo returns the servers that know each directive, and which names those are that
// CONFIG GET has for patterns, from testdata/directives.txt.
func knownTo(t *testing.T) (servers map[string][]string, listed map[string]bool) {
	text, err := os.ReadFile("testdata/directives.txt")
	if err != nil {
		t.Fatal(err)
	}
	servers, listed = map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words, hidden := strings.Fields(line), false
		for _, name := range words[1:] {
			if name == "+" {
				hidden = true
				continue
			}
			servers[name] = append(servers[name], words[0])
			listed[name] = listed[name] || !hidden
		}
	}
	return servers, listed
}

// A configuration file of Redis 7.0, 8.0 or Valkey 9.1 starts ebb, whatever is in it.
func TestEachDirectiveOfRedisAndValkeyIsKnown(t *testing.T) {
	servers, listed := knownTo(t)
	if len(servers) < 250 {
		t.Errorf("only %d names", len(servers))
	}
	for name, by := range servers {
		d := Lookup(name)
		if d == nil {
			t.Errorf("%s of %s is not known", name, strings.Join(by, ", "))
			continue
		}
		if listed[name] && d.Hidden {
			t.Errorf("%s of %s is in no CONFIG GET *", name, strings.Join(by, ", "))
		}
	}
}

// A name of Valkey is the directive of Redis that does the same.
func TestNamesOfValkeySetWhatRedisNames(t *testing.T) {
	s := New()
	text := "commandlog-execution-slower-than 77\ncommandlog-slow-execution-max-len 5\nprimaryuser u\nprimaryauth p\nrepl-diskless-load " +
		"flush-before-load\nserver-cpulist 0-1\n"
	if err := s.Parse(strings.NewReader(text), "valkey.conf"); err != nil {
		t.Fatal(err)
	}
	want := "masterauth p masteruser u server_cpulist 0-1 slowlog-log-slower-than 77 slowlog-max-len 5"
	if got := strings.Join(s.Get("masterauth", "masteruser", "server_cpulist", "slowlog-log-slower-than", "slowlog-max-len"),
		" "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if us, n := s.SlowlogLogSlowerThan(), s.SlowlogMaxLen(); us != 77 || n != 5 {
		t.Errorf("the slow log takes %d entries from %d us", n, us)
	}
}

func TestDefaultsAreRedis(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			theirs, s := newOracle(t, program).get("*"), New()
			later, _ := knownTo(t)
			if err := s.Parse(strings.NewReader(""), "an empty file"); err != nil {
				t.Fatal(err)
			}
			pairs := s.Get("*")
			for i := 0; i < len(pairs); i += 2 {
				name, value := pairs[i], pairs[i+1]
				want, known := theirs[name]
				delete(theirs, name)
				switch {
				case !known && ours[name] == "" && later[name] == nil:
					t.Errorf("%s is not in Redis", name)
				case known && value != want && otherDefaults[name] == "" && (program != realserver.Valkey9 || !valkeysDefault(t, name)):
					t.Errorf("%s is %q, in Redis %q", name, value, want)
				}
			}
			for name := range theirs {
				if Lookup(name) == nil {
					t.Errorf("%s is missing", name)
				}
			}
		})
	}
}

// valkeysDefault reports whether Valkey 9 differs from Redis 8 in a default, and ebb has that of Redis.
func valkeysDefault(t *testing.T, name string) bool {
	covered, err := compat.Covers("config-defaults-of-valkey", realserver.Valkey9)
	if err != nil || !covered {
		t.Fatal(err)
	}
	return name == "repl-backlog-size" || Lookup(name).Unused != ""
}

// looser lists the pairs, the directives, or the values of any directive, for which a
// server's answer is not ours: the IDs of the differences in internal/compat.
var looser = map[string]string{
	"maxmemory k": "config-unit-alone", "maxmemory b": "config-unit-alone",
	"maxmemory 5%": "config-share-of-memory", "maxmemory 10%": "config-share-of-memory",
	"maxmemory 99999999999999999gb":                     "config-numbers-wrap",
	"proc-title-template {title}":                       "config-empty-title",
	"maxmemory-clients 18446744073709551615":            "config-numbers-wrap",
	"maxmemory-clients 9223372036854775808":             "config-numbers-wrap",
	"maxmemory-clients 99999999999999999999":            "config-numbers-wrap",
	"save 60 9999999999":                                "config-numbers-wrap",
	"save 1 99999999999999999999999":                    "config-numbers-wrap",
	"save 1 2147483648":                                 "config-numbers-wrap",
	"client-output-buffer-limit normal 1 1 99999999999": "config-numbers-wrap",
	"latency-tracking-info-percentiles 0x10":            "config-hexadecimal",
	"notify-keyspace-events KEAn":                       "config-events-letter-n",
	"notify-keyspace-events dtexzhsl$gnmEK":             "config-events-letter-n",
	"shutdown-on-sigint":                                "config-choices-of-valkey",
	"shutdown-on-sigterm":                               "config-choices-of-valkey",
	"repl-diskless-load":                                "config-choices-of-valkey",
	"loglevel":                                          "config-loglevel-nothing",
	"set-max-listpack-value 5kb":                        "config-listpack-value-unit",
	"set-max-listpack-value 1mb":                        "config-listpack-value-unit",
	"set-max-listpack-value 2GB":                        "config-listpack-value-unit",
	"18446744073709551616":                              "config-beyond-64-bits",
	"99999999999999999999":                              "config-beyond-64-bits",
	"locale-collate":                                    "config-locale",
	"maxmemory-samples":                                 "config-many-samples",
	"cluster-announce-ip":                               "config-announced-names",
	"cluster-announce-human-nodename":                   "config-announced-names",
	"rdma-bind":                                         "config-rdma",
	"rdma-port":                                         "config-rdma",
}

// allows reports whether a program may differ at a value of a directive, and notes in
// seen which difference allows it.
func allows(t *testing.T, seen map[string]bool, program, name, value string) bool {
	for _, key := range []string{name + " " + value, name, value} {
		if id := looser[key]; id != "" {
			covered, err := compat.Covers(id, program)
			if err != nil {
				t.Fatal(err)
			}
			if covered {
				seen[id] = true
				return true
			}
		}
	}
	return false
}

// probes are given to every directive that can be changed without harm.
var probes = []string{"", "zzz", "yes", "NO", "0", "1", "-1", "05", "+5", " 5", "1e1", "5kb", "1mb", "2GB", "100", "101", "99999",
	"2147483648", "-2147483649", "9223372036854775807",
	"9223372036854775808", "99999999999999999999", "5%", "1 2", "a b"}

// particular lists special values for directives with a syntax of their own.
var particular = map[string][]string{
	"maxmemory": {"k", "b", "1k ", "1t", "001k", "1kbb", "0x10", "18446744073709551615", "18446744073709551616",
		"99999999999999999gb", "10%"},
	"maxmemory-clients":      {"%", "5%%", "5b%", " 5%", "05%", "101%", "-0%", "0%", "100%", "18446744073709551615"},
	"maxmemory-policy":       {"ALLKEYS-LRU", "allkeys", "noeviction"},
	"notify-keyspace-events": {"KEA", "KEA ", "g$lshzxetd", "mnKl", "E", "dtexzhsl$gnmEK", "KEAn", "q"},
	"save": {"60", " 60 1", "60 1 ", "60 1 60 1 5 5", "60 9999999999", "1 99999999999999999999999", "1 2x",
		"1 2147483648", "01 +2", "1 0", "0 1", "1 -1", "1 '2'", ""},
	"client-output-buffer-limit": {"normal  1 1 1", "NORMAL 1 1 1", "slave 1 1 1 replica 2 2 2", "master 1 1 1", "normal 1 1 1x",
		"normal 1 1 99999999999", "normal -1 1 1", "normal 1mb 1k 0 pubsub 1 2 3"},
	"oom-score-adj-values": {"1 2 3 4", "3 2 1", "'1' 2 3", "1  2 3", "1 2 3x", "1 2 5000", "-2000 0 2000"},
	"latency-tracking-info-percentiles": {"1e1 100 0 -0 33.3333333333333333 1e-5 +5", "0x10", "inf", "nan", "5 ",
		"5  6", "50 99.99 50", "100.1"},
	"shutdown-on-sigint":        {"save now", "nosave save", "default save", "now now force", "Default", "now x"},
	"proc-title-template":       {"{title}", "{foo}", "{title", "x", "{port} {config-file}"},
	"cluster-announce-hostname": {"a_b", "a-b.c", ""},
	"appendfsync":               {"Always", "everysec"},
	"loglevel":                  {"DEBUG", "nothing", "notice"},
	"dbfilename":                {"a/b", "x.rdb"},
	"proto-max-bulk-len":        {"1048575", "1048576", "512mb"},
	"hz":                        {"501", "500", "1000"},
	"repl-backlog-size":         {"16383", "16385"},
	"tls-auth-clients":          {"Optional"},
	"replica-announce-port":     {"65535", "65536"},
	"list-max-listpack-size":    {"-5", "-6", "-2147483648"},
}

// harmful are the directives that would cut the oracle off, or whose answer
// depends on its surroundings.
var harmful = map[string]bool{
	"port": true, "bind": true, "requirepass": true, "tls-port": true, "maxclients": true, "appendonly": true,
	"bind-source-addr": true, "oom-score-adj": true, "activedefrag": true, "watchdog-period": true, "ignore-warnings": true,
	"tls-cluster": true, "tls-replication": true,
}

func TestChangeAcceptsAndRefusesWhatRedisDoes(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			changeAsOn(t, program)
		})
	}
}

// changeAsOn sets every directive that a server knows to every probe, there and here.
func changeAsOn(t *testing.T, program string) {
	o, s := newOracle(t, program), New()
	known := o.get("*")
	n, seen := 0, map[string]bool{}
	for _, d := range Directives() {
		if _, has := known[d.Name]; !has || harmful[d.Name] || strings.HasPrefix(d.Name, "tls-") && d.Kind == Text {
			continue
		}
		for _, value := range append(append(bounds(d), probes...), particular[d.Name]...) {
			if d.Name == "timeout" && value == "1" || d.Name == "client-query-buffer-limit" && value == "1mb" {
				continue // it would close the oracle's connection
			}
			n++
			theirs := o.do("CONFIG", "SET", d.Name, value)
			err := s.Change(true, d.Name, value)
			got, want := "OK "+s.String(d.Name), "OK "+o.get(d.Name)[d.Name]
			if err != nil {
				got = err.Error()
			}
			if e := theirs.Err(); e != nil {
				want = e.Error()
			}
			if got != want && !allows(t, seen, program, d.Name, value) {
				t.Errorf("CONFIG SET %s %q\nours  %s\nRedis %s", d.Name, value, got, want)
			}
		}
		o.do("CONFIG", "SET", d.Name, known[d.Name])
		s.store(d, d.initial)
	}
	t.Logf("%d values were compared", n)
	for _, id := range looser {
		if covered, _ := compat.Covers(id, program); covered && !seen[id] {
			t.Errorf("the difference %s is no longer seen", id)
		}
	}
	if n < 3000 {
		t.Errorf("only %d values were compared", n)
	}
}

// bounds are a directive's smallest and largest values by our table, and those one beyond.
func bounds(d *Directive) []string {
	switch d.Kind {
	case Integer, Memory, MemoryOrPart:
		low, high := big.NewInt(d.Min), new(big.Int).SetUint64(d.Max)
		one := big.NewInt(1)
		return []string{low.String(), new(big.Int).Sub(low, one).String(), high.String(), new(big.Int).Add(high, one).String()}
	case Octal:
		return []string{"0", "777", "1000", "8"}
	case Enum, Flags:
		return append(slices.Clone(d.Choices), d.Choices[0]+" "+d.Choices[0])
	}
	return nil
}
