package servercmd_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// filtered are the filters of CLIENT LIST and CLIENT KILL in Valkey 9, with values that some of the clients
// of TestFiltersOfClientsAgreeWithValkey have, and values that none has.
var filtered = []string{
	"TYPE normal", "TYPE pubsub", "TYPE master", "TYPE primary", "TYPE replica", "TYPE robot", "USER default", "USER none",
	"ADDR 192.0.2.1:1", "FLAGS N", "FLAGS P", "FLAGS x", "FLAGS Px", "FLAGS N?", `FLAGS ""`, "NAME two", "NAME TWO", "NAME none",
	`NAME ""`, "LIB-NAME lib", "LIB-NAME none", `LIB-NAME ""`,
	"LIB-VER 1.0", "LIB-VER 2", "DB 3", "DB 0", "DB 16", "DB -1", "DB x", "CAPA r", "CAPA x", `CAPA ""`,
	"IP 127.0.0.1", "IP 192.0.2.1", `IP ""`,
}

// filteredAlone are the filters without a NOT- form.
var filteredAlone = []string{"MAXAGE 1000", "MAXAGE 0", "MAXAGE -1", "MAXAGE x", "IDLE 1000", "IDLE 0", "IDLE x", "SKIPME yes",
	"SKIPME no", "SKIPME maybe", "NOT-MAXAGE 1", "NOT-IDLE 1", "NOT-SKIPME yes", "NONE x", "NOT-ID x", "MAXAGE", "NOT-ID"}

// filteredTogether are combinations of filters.
var filteredTogether = []string{"NAME two NAME me", "NAME two NOT-NAME me", "NOT-NAME two NOT-NAME me", "DB 3 DB 0",
	"FLAGS P FLAGS x", "TYPE normal FLAGS x", "TYPE normal NOT-TYPE pubsub", "SKIPME yes SKIPME no",
	"USER default NAME two DB 0 LIB-NAME lib", "USER default USER none", "name two db 0",
	"ID %1 %2", "ID %1 ID %2", "NOT-ID %1 %2", "NOT-ID %1 NOT-ID %2", "ID %1 %2 NOT-ID %2", "ID %1 %2 TYPE normal NAME two", "ID %1 NAME"}

// clientNames matches the names that CLIENT LIST shows.
var clientNames = regexp.MustCompile(`(?m) name=(\w*) `)

// listed returns the replies to CLIENT LIST and CLIENT KILL with each filter, as the names of the clients, or
// as the error. CLIENT KILL closes nothing here: each filter is followed by NAME none, which no client
// passes.
func listed(t *testing.T, target transcript.Target) []string {
	t.Helper()
	ask := func(n int, args ...string) resp.Value {
		if err := target.Send(n, args); err != nil {
			t.Fatal(err)
		}
		v, ok := target.Next(n)
		if !ok {
			t.Fatalf("%q: no reply", args)
		}
		return v
	}
	ask(1, "CLIENT", "SETNAME", "me")
	ask(2, "CLIENT", "SETNAME", "two")
	ask(2, "CLIENT", "SETINFO", "LIB-NAME", "lib")
	ask(2, "CLIENT", "SETINFO", "LIB-VER", "1.0")
	ask(3, "CLIENT", "SETNAME", "three")
	ask(3, "SELECT", "3")
	ask(4, "CLIENT", "SETNAME", "four")
	ask(4, "SUBSCRIBE", "ch")
	ask(5, "CLIENT", "SETNAME", "five")
	ask(5, "MULTI")
	first, second := strconv.FormatInt(ask(1, "CLIENT", "ID").Int, 10), strconv.FormatInt(ask(2, "CLIENT", "ID").Int, 10)

	var filters []string
	for _, f := range filtered {
		filters = append(filters, f, "NOT-"+f)
	}
	var replies []string
	for _, f := range slices.Concat(filters, filteredAlone, filteredTogether) {
		words, _ := wire.SplitArgs(strings.NewReplacer("%1", first, "%2", second).Replace(f))
		v := ask(1, append([]string{"CLIENT", "LIST"}, words...)...)
		text := v.Str
		if v.Err() == nil {
			var names []string
			for _, m := range clientNames.FindAllStringSubmatch(text, -1) {
				names = append(names, m[1])
			}
			slices.Sort(names)
			text = strings.Join(names, " ")
		}
		kill := ask(1, append(append([]string{"CLIENT", "KILL"}, words...), "NAME", "none")...)
		replies = append(replies, f+": "+text, "KILL "+f+": "+kill.Str+strconv.FormatInt(kill.Int, 10))
	}
	return replies
}

// The filters select the same clients as in Valkey 9, and refuse the same mistakes.
func TestFiltersOfClientsAgreeWithValkey(t *testing.T) {
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ours := listed(t, e)
	s := transcript.NewServer(realserver.Start(t, realserver.Valkey9))
	defer s.Close()
	theirs := listed(t, s)
	for i := range ours {
		want := theirs[i]
		if strings.Contains(want, "ID x: ") || strings.HasPrefix(want, "KILL NOT-ID: ") {
			// Valkey replies a syntax error; ebb replies as Redis does.
			if covers, err := compat.Covers("client-id-errors", realserver.Valkey9); !covers || err != nil || ours[i] == want {
				t.Errorf("%s, Valkey %s: %v %v", ours[i], want, covers, err)
			}
			continue
		}
		if ours[i] != want {
			t.Errorf("here   %s\nvalkey %s", ours[i], want)
		}
	}
}

// CLIENT KILL MAXAGE has the replies of Redis 8, and Redis refuses only the filters of Valkey.
func TestFiltersOfClientsAgreeWithRedis(t *testing.T) {
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	one := func(target transcript.Target, line string) string {
		args, _ := wire.SplitArgs(line)
		if err := target.Send(1, args); err != nil {
			t.Fatal(err)
		}
		v, _ := target.Next(1)
		return strings.Join(transcript.Lines(v), "\n")
	}
	for program, lines := range map[string]map[string]string{
		realserver.Redis8: {
			"CLIENT KILL MAXAGE 100000": "", "CLIENT KILL MAXAGE 0": "", "CLIENT KILL MAXAGE -1": "", "CLIENT KILL MAXAGE x": "",
			"CLIENT KILL MAXAGE 100000 SKIPME no ID 999": "",
			"CLIENT KILL ID 999 x":                       "", "CLIENT KILL ID x": "", "CLIENT KILL ID 0": "",
			"CLIENT KILL TYPE robot": "", "CLIENT LIST ID x": "",
			"CLIENT LIST ID 1 x": "", "CLIENT LIST ID 0": "",
			"CLIENT LIST TYPE robot": "", "CLIENT LIST x": "", "CLIENT LIST MAXAGE 0": "client-filters", "CLIENT KILL NAME none": "client-filters",
			"CLIENT KILL ID 999 998": "client-filters",
			"CLIENT LIST NOT-ID 0":   "client-filters", "CLIENT LIST TYPE primary": "client-filters",
		},
		realserver.Redis7: {"CLIENT KILL MAXAGE 100000": "client-maxage", "CLIENT KILL DB 3": "client-filters",
			"CLIENT KILL ID 999 998": "client-filters"},
	} {
		t.Run(program, func(t *testing.T) {
			s := transcript.NewServer(realserver.Start(t, program))
			defer s.Close()
			for line, id := range lines {
				ours, theirs := one(e, line), one(s, line)
				covered, err := false, error(nil)
				if id != "" {
					covered, err = compat.Covers(id, program)
				}
				if same := ours == theirs; same == covered || err != nil {
					t.Errorf("%s: here %q, %s %q; difference %q %v", line, ours, program, theirs, id, err)
				}
			}
		})
	}
}

// MONITOR shows a script and a function that cannot run, as on the three servers.
func TestMonitorShowsScriptsThatFail(t *testing.T) {
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ours := monitored(t, e)
	if len(ours) < 10 {
		t.Fatalf("MONITOR showed %q", ours)
	}
	for _, program := range compat.All.Programs() {
		s := transcript.NewServer(realserver.Start(t, program))
		if theirs := monitored(t, s); !slices.Equal(ours, theirs) {
			t.Errorf("here\n%s\n%s\n%s", strings.Join(ours, "\n"), program, strings.Join(theirs, "\n"))
		}
		s.Close()
	}
}

// place matches the time and the client of a command.
var place = regexp.MustCompile(`^[\d.]+ \[(\d+) [^\]]*?(lua|)\]`)

// monitored returns the lines that a second connection's MONITOR shows of scripts that fail.
func monitored(t *testing.T, target transcript.Target) (lines []string) {
	t.Helper()
	next := func(n int) string {
		v, ok := target.Next(n)
		if !ok {
			t.Fatal("no reply")
		}
		return v.Str
	}
	send := func(n int, line string) {
		args, _ := wire.SplitArgs(line)
		if err := target.Send(n, args); err != nil {
			t.Fatal(err)
		}
		next(n)
	}
	send(2, "MONITOR")
	for _, line := range []string{`EVAL "foo(" 0`, `EVAL "#!js\nreturn 1" 0`, `EVAL "return 1" x`, `EVAL "return 1" 3`, `EVAL "return 1"`,
		"EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
		"EVALSHA x 0", `EVAL_RO "#!lua\nreturn 1" 0`, "EVALSHA_RO x 0", "FCALL none 0", "FCALL none x", "FCALL_RO none 0",
		`EVAL "redis.call('SELECT', 3) return redis.call('GET', 'k')" 0`,
		`EVAL "return redis.pcall('NONE')" 0`, "MULTI", `EVAL "foo(" 0`, "EVALSHA x 0", "FCALL none 0", "EXEC", "ECHO end"} {
		send(1, line)
	}
	for {
		line := place.ReplaceAllString(next(2), "[$1 $2]")
		lines = append(lines, line)
		if strings.HasSuffix(line, `"end"`) {
			return lines
		}
	}
}
