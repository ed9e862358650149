package console

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

// argvJSON returns the argv of a command line whose words have no blanks.
func argvJSON(line string) string {
	var words []string
	for w := range strings.FieldsSeq(line) {
		words = append(words, fmt.Sprintf(`{"t":%q}`, w))
	}
	return "[" + strings.Join(words, ",") + "]"
}

// do runs a command by the console, and confirms it if necessary.
func (b *bench) do(line string) (int, string) {
	b.t.Helper()
	status, body := b.ask("POST", "api/do", `{"db":0,"argv":`+argvJSON(line)+`}`)
	if status == http.StatusConflict {
		var f failure
		decode(b.t, body, &f)
		if f.Confirm != "" {
			return b.ask("POST", "api/do", fmt.Sprintf(`{"db":0,"argv":%s,"confirm":%q}`, argvJSON(line), f.Confirm))
		}
	}
	return status, body
}

func TestACommandRunsByTheConsole(t *testing.T) {
	b := newBench(t, Options{})
	for _, x := range []struct{ line, want string }{
		{"SET k v", `{"reply":{"s":"OK"},"text":"OK","ms":0}`},
		{"GET k", `{"reply":{"t":"v"},"text":"\"v\"","ms":0}`},
		{"INCR k", `{"reply":{"e":"ERR value is not an integer or out of range"},"text":"(error) ERR value is not an integer or out of range","ms":0,"error":true}`},
		{"HSET h f 9007199254740993", `{"reply":{"i":"1"},"text":"(integer) 1","ms":0}`},
		{"HGETALL h", `{"reply":{"map":[[{"t":"f"},{"t":"9007199254740993"}]]},"text":"1# \"f\" =\u003e \"9007199254740993\"","ms":0}`},
		{"NOSUCH a", `{"reply":{"e":"ERR unknown command 'NOSUCH', with args beginning with: 'a' "},"text":"(error) ERR unknown command 'NOSUCH', ` +
			`with args beginning with: 'a' ","ms":0,"error":true}`},
		{"GET", `{"reply":{"e":"ERR wrong number of arguments for 'get' command"},` +
			`"text":"(error) ERR wrong number of arguments for 'get' command","ms":0,"error":true}`},
	} {
		if status, body := b.do(x.line); status != 200 || body != x.want {
			t.Errorf("%s: %d %s", x.line, status, body)
		}
	}
	for body, want := range map[string]int{`{"db":16,"argv":[{"t":"PING"}]}`: 400, `{"db":-1,"argv":[{"t":"PING"}]}`: 400, `{"db":0,"argv":[]}`: 400,
		`{"db":0,"argv":[{"t":"PING"}],"expect":1}`: 400, `[]`: 400, `{`: 400, `{"db":0,"argv":[{"t":"PING"}]} x`: 400, `{"db":3,"argv":[{"t":"PING"}]}`: 200,
		`{"db":0,"argv":[{"t":"ECHO"},{"t":"` + strings.Repeat("x", maxBody) + `"}]}`: 413} {
		if status, got := b.ask("POST", "api/do", body); status != want {
			t.Errorf("%.60s: %d %s", body, status, got)
		}
	}
	for body, want := range map[string]string{`{"db":"0"}`: `the JSON value string at \"db\"`, `{"db":0,"argv":[["GET"]]}`: `the JSON value array at \"argv\"`} {
		if _, got := b.ask("POST", "api/do", body); !strings.Contains(got, want) || strings.Contains(got, "struct") {
			t.Errorf("%s: %s", body, got)
		}
	}
	b.admin("SET", "in0", "x")
	if _, body := b.ask("POST", "api/do", `{"db":3,"argv":[{"t":"GET"},{"t":"in0"}]}`); !strings.Contains(body, "null") {
		t.Errorf("database 3 has the key of database 0: %s", body)
	}
	if _, body := b.do("GET in0"); !strings.Contains(body, `"x"`) {
		t.Errorf("the session has stayed in database 3: %s", body)
	}
}

// A batch begins no further command after its viewer has left or the server stops.
func TestABatchEndsWithItsRequest(t *testing.T) {
	b := newBench(t, Options{})
	cmds := `{"db":0,"cmds":[` + argvJSON("SET a 1") + "," + argvJSON("SET b 1") + `]}`
	r := b.request("POST", "api/batch", cmds)
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	if status := b.serveTo(r.WithContext(ctx)); status != http.StatusServiceUnavailable {
		t.Errorf("%d", status)
	}
	if got := b.admin("EXISTS", "a", "b"); got.Int != 0 {
		t.Errorf("%d commands have run", got.Int)
	}
	if status, _ := b.ask("POST", "api/batch", cmds); status != http.StatusOK {
		t.Errorf("the next batch: %d", status)
	}
	k := &call{c: b.Console}
	if err := k.mayGoOn(&request{ctx: t.Context()}, batchTime+1); err == nil {
		t.Error("a batch has no end")
	}
}

func TestABatchRunsInOrder(t *testing.T) {
	b := newBench(t, Options{})
	cmds := `"cmds":[` + argvJSON("SET a 1") + "," + argvJSON("INCR a") + "," + argvJSON("LPUSH a x") + "]"
	want := `{"replies":[{"s":"OK"},{"i":"2"},{"e":"WRONGTYPE Operation against a key holding the wrong kind of value"}],"text":["OK","(integer) 2",` +
		`"(error) WRONGTYPE Operation against a key holding the wrong kind of value"]}`
	for _, atomic := range []string{"false", "true"} {
		if status, body := b.ask("POST", "api/batch", `{"db":0,`+cmds+`,"atomic":`+atomic+`}`); status != 200 || body != want {
			t.Errorf("atomic %s: %d %s", atomic, status, body)
		}
	}
	bad := `{"db":0,"cmds":[` + argvJSON("SET b 1") + "," + argvJSON("SET b") + `],"atomic":true}`
	if status, body := b.ask("POST", "api/batch", bad); status != 409 || !strings.Contains(body, "number 1 was refused") {
		t.Errorf("%d %s", status, body)
	}
	if got := b.admin("EXISTS", "b"); got.Int != 0 {
		t.Error("a transaction that was refused has written")
	}
	if status, body := b.ask("POST", "api/batch", `{"db":0,`+cmds+`,"atomic":true}`); status != 200 || body != want {
		t.Errorf("after a transaction that was refused: %d %s", status, body)
	}
}

func TestWhatTheConsoleRefuses(t *testing.T) {
	b := newBench(t, Options{Label: "production #c0392b"})
	b.admin("LPUSH", "list", "x")
	for line, code := range map[string]string{
		"SELECT 1": "STATEFUL", "MULTI": "STATEFUL", "SUBSCRIBE c": "STATEFUL", "MONITOR": "STATEFUL", "CLIENT REPLY OFF": "STATEFUL",
		"CLIENT TRACKING ON": "STATEFUL", "AUTH x": "STATEFUL", "RESET": "STATEFUL", "QUIT": "STATEFUL", "HELLO 2": "STATEFUL", "CLIENT NO-TOUCH OFF": "STATEFUL",
		"BLPOP k 0": "BLOCKING", "BLPOP k 10.5": "BLOCKING", "XREAD BLOCK 0 STREAMS s 0": "BLOCKING", "WAIT 1 0": "BLOCKING", "WAIT 1 10001": "BLOCKING",
		"BLMPOP 11 1 k LEFT": "BLOCKING", "DQ.POP q BLOCK 20000": "BLOCKING", "CLIENT PAUSE 3600000": "BLOCKING",
		"MIGRATE 127.0.0.1 1 k 0 10001": "BLOCKING", "MIGRATE 127.0.0.1 1 k 0 10000": "CONFIRM",
		"FLUSHALL": "CONFIRM", "DEL a b": "CONFIRM", "UNLINK a b": "CONFIRM", "MSET a 1 b 2": "CONFIRM", "CONFIG SET maxmemory 1": "CONFIRM",
		"SHUTDOWN NOSAVE": "CONFIRM", "CLIENT KILL ID 1": "CONFIRM", "ACL SETUSER x": "CONFIRM", "SCRIPT FLUSH": "CONFIRM",
		"FUNCTION FLUSH": "CONFIRM",
		"DEL a":          "", "SET a 1": "", "RENAME a b": "", "BLPOP list 5": "", "CONFIG GET *": "",
		"INFO": "", "KEYS *": "", "CLIENT LIST": "", "XREAD STREAMS s 0": "",
	} {
		status, body := b.ask("POST", "api/do", `{"db":0,"argv":`+argvJSON(line)+`}`)
		var f failure
		decode(t, body, &struct {
			*failure
			Error any `json:"error"`
		}{failure: &f})
		if code != f.Code || (status == 200) != (code == "") || code == "CONFIRM" && (f.Confirm != "production" || status != 409) {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
	if status, body := b.do("MSET a 1 b 2"); status != 200 {
		t.Errorf("confirmed: %d %s", status, body)
	}
	if status, body := b.ask("POST", "api/batch", `{"db":0,"cmds":[`+argvJSON("UNLINK c")+","+argvJSON("DEL d")+`]}`); status != 409 ||
		!strings.Contains(body, `"confirm":"production"`) {
		t.Errorf("a batch that removes two keys: %d %s", status, body)
	}
	plain := newBench(t, Options{})
	unlinks := `{"db":0,"cmds":[` + argvJSON("UNLINK c") + "," + argvJSON("SET c 1") + "," + argvJSON("UNLINK d") + `],"confirm":%q}`
	for confirm, want := range map[string]int{"": 409, "UNLINK": 200} {
		if status, body := plain.ask("POST", "api/batch", fmt.Sprintf(unlinks, confirm)); status != want {
			t.Errorf("a batch that removes two keys, with %q typed: %d %s", confirm, status, body)
		}
	}
	for line, want := range map[string]string{"DEL a b": "a", "FLUSHALL": "FLUSHALL", "CONFIG SET maxmemory 0": "CONFIG SET"} {
		_, body := plain.ask("POST", "api/do", `{"db":0,"argv":`+argvJSON(line)+`}`)
		var f failure
		if decode(t, body, &f); f.Confirm != want {
			t.Errorf("%s: type %q, want %q", line, f.Confirm, want)
		}
	}
}

// Every request of every example is sent to a read-only console, on data of all kinds, and the data stays
// unchanged.
func TestAReadOnlyConsoleChangesNothing(t *testing.T) {
	tier.Sequential(t)
	b := newBench(t, Options{ReadOnly: true})
	data := func() {
		for _, line := range []string{"SET k v", "SET n 7 EX 100 SLIDE", "HSET h f v", "RPUSH l a b", "SADD s a b", "ZADD z 1 a 2 b", "XADD x 1-1 f v",
			"PFADD p a b", "PFADD p2 c", "PFMERGE pm p p2", "GEOADD g 1 1 a", "RL.TAKE r 5 1000000", "LOCK.ACQUIRE lk o 1000000", "SEM.ACQUIRE sm o 2 1000000",
			"DQ.ADD q i p", "SETBIT b 7 1", "XGROUP CREATE x gr 0"} {
			if v := b.admin(strings.Fields(line)...); v.Err() != nil {
				t.Fatalf("%s: %v", line, v)
			}
		}
	}
	data()
	b.clock.Advance(500 * time.Millisecond) // a sliding deadline would move
	digest := func() string {
		return b.admin("DEBUG", "DIGEST").Str + b.admin("PTTL", "n").String() + b.admin("OBJECT", "IDLETIME", "k").String()
	}
	sha := b.admin("SCRIPT", "LOAD", "return 1").Str
	b.admin("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)")
	server := func() string {
		return b.admin("ACL", "LIST").String() + b.admin("CONFIG", "GET", "*").String() + b.admin("SCRIPT", "EXISTS", sha).String() +
			b.admin("FUNCTION", "LIST").String()
	}
	before, serverBefore := digest(), server()
	ran, refused := 0, 0
	try := func(name string, argv [][]byte) {
		words := make([]string, len(argv))
		for i, a := range argv {
			words[i] = string(mustJSON(t, bytesOf(string(a))))
		}
		status, body := b.ask("POST", "api/do", `{"db":0,"argv":[`+strings.Join(words, ",")+`]}`)
		if status == 200 {
			ran++
		} else {
			refused++
		}
		spec := b.specOf(argv)
		if spec != nil && spec.Has(command.Write) && !isRead(spec, argv) && status == 200 {
			t.Errorf("%q has run: %s", argv, body)
		}
		if now := digest(); now != before {
			t.Fatalf("%s: %q has changed the data: %d %s", name, argv, status, body)
		}
	}
	table := b.svc.Table()
	for id := range table.Len() {
		s := table.Spec(id)
		for line := range strings.Lines(s.Examples) {
			rest, ok := strings.CutPrefix(line, "> ")
			if !ok {
				continue
			}
			if words, ok := wire.SplitArgs(strings.TrimSpace(rest)); ok && len(words) > 0 {
				argv := make([][]byte, len(words))
				for i, w := range words {
					argv[i] = []byte(w)
				}
				try(s.Name, argv)
			}
		}
		if s.Run == nil {
			continue
		}
		for _, key := range []string{"k", "n", "h", "l", "s", "z", "x", "p", "pm", "r", "lk", "sm", "q", "g", "b"} {
			argv := [][]byte{[]byte(strings.ReplaceAll(s.Name, "|", " "))}
			if c, sub, ok := strings.Cut(s.Name, "|"); ok {
				argv = [][]byte{[]byte(c), []byte(sub)}
			}
			for len(argv) < max(s.Arity(), -s.Arity()) {
				argv = append(argv, []byte(key))
			}
			if name := s.Name; name != "debug|sleep" {
				try(name, argv)
			}
		}
	}
	if ran < 1000 || refused < 1000 {
		t.Errorf("%d requests have run, %d were refused: the test tries too little", ran, refused)
	}
	if now := server(); now != serverBefore {
		t.Errorf("users, the configuration, scripts or functions have changed: %s, before %s", now, serverBefore)
	}
	for _, line := range []string{"GROUP STATUS", "GROUP HELP"} {
		if status, body := b.do(line); strings.Contains(body, "READONLY") {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
	if status, body := b.do("SET k w"); status != 403 || !strings.Contains(body, `"code":"READONLY"`) {
		t.Errorf("%d %s", status, body)
	}
}

// The actions that me lists are those that do allows: two users in each of the 100 rounds.
func TestCanSaysWhatDoAllows(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		testCan(t, rt)
		testCan(t, rt)
	})
}

// testCan compares the actions of a random user, as me lists them, with those that do allows.
func testCan(t *testing.T, rt *rapid.T) {
	readOnly := rapid.Bool().Draw(rt, "read-only")
	b := newBench(t, Options{ReadOnly: readOnly, Access: func(*http.Request) (string, bool) { return "ann", true }})
	rules := []string{"ACL", "SETUSER", "ann", "on", "nopass", "~*", "&*"}
	pool := []string{"+@all", "-@all", "+@read", "-@dangerous", "+@write", "-@admin", "+@lock", "-@queue", "+rl.reset", "-client|kill",
		"+client|kill", "-config|set", "+info", "+@expiry", "-@keyspace", "+acl", "-acl|setuser", "+@hash", "+@list", "-set", "(+@fast ~*)",
		"(+unlink ~a*)"}
	rules = append(rules, rapid.SliceOfN(rapid.SampledFrom(pool), 0, 6).Draw(rt, "rules")...)
	if err := b.admin(rules...).Err(); err != nil {
		rt.Fatalf("%q: %v", rules, err)
	}
	_, body := b.ask("GET", "api/me", "")
	var m me
	decode(t, body, &struct {
		*me
		User  any `json:"user"`
		Label any `json:"label"`
	}{me: &m})
	if len(m.Can) != len(actions) {
		rt.Fatalf("%d actions of %d", len(m.Can), len(actions))
	}
	for action, examples := range actions {
		allowed := false
		for _, line := range examples {
			if strings.HasPrefix(line, "SHUTDOWN") || strings.HasPrefix(line, "FAILOVER") {
				line = "ACL DRYRUN ann " + line
				allowed = allowed || b.admin(strings.Fields(line)...).Str == "OK" && !readOnly
				continue
			}
			// a key that only the second selector allows
			line = strings.ReplaceAll(line+" ", " k ", " a ")
			if b.specOf(argv(line)) == nil {
				continue
			}
			status, body := b.do(line)
			allowed = allowed || status != 403
			if status >= 500 {
				rt.Fatalf("%s: %d %s", line, status, body)
			}
		}
		if m.Can[action] != allowed || m.Can[action] == (m.Need[action] != "") {
			rt.Errorf("with %q, can[%s] is %v, need %q, and do says %v", rules[4:], action, m.Can[action], m.Need[action], allowed)
		}
	}
	_ = b.Close()
}

func argv(line string) (out [][]byte) {
	for w := range strings.FieldsSeq(line) {
		out = append(out, []byte(w))
	}
	return out
}

func TestWritesAndRefusalsAreInTheAudit(t *testing.T) {
	b := newBench(t, Options{})
	b.do("SET k secret-value")
	b.do("GET k")
	b.do("SELECT 1")
	b.do("ACL SETUSER ann on >topsecret +@read ~x")
	b.do("CONFIG SET maxmemory 100mb")
	status, body := b.ask("GET", "api/audit", "")
	var log struct{ Rows []map[string]any }
	decode(t, body, &log)
	if status != 200 || len(log.Rows) != 4 || strings.Contains(body, "topsecret") {
		t.Fatalf("%d %s", status, body)
	}
	for i, want := range []string{"CONFIG", "ACL", "SELECT", "SET"} {
		row := log.Rows[i]
		if got := row["argv"].([]any)[0].(map[string]any)["t"]; got != want || row["addr"] != "127.0.0.1:50000" || (want == "SELECT") != (row["refused"] == true) {
			t.Errorf("row %d: %v", i, row)
		}
	}
	for range maxAudit + 5 {
		b.do("SET k v")
	}
	refused := len(b.audits.refused.rows)
	if got := b.audits.latest(); len(got) != maxAudit+refused || got[0].At < got[len(got)-1].At {
		t.Errorf("%d entries, %d refused", len(got), refused)
	}
	b.admin("ACL", "SETUSER", "default", "-get")
	cmds := strings.TrimSuffix(strings.Repeat(`[{"t":"GET"},{"t":"k"}],`, 1000), ",")
	if status, body := b.ask("POST", "api/batch", `{"db":0,"cmds":[`+cmds+`]}`); status != 200 {
		t.Fatalf("%d %.200s", status, body)
	}
	if n := len(b.audits.refused.rows) - refused; n != 2 || !strings.HasPrefix(b.audits.latest()[0].Result, "999 more commands") {
		t.Errorf("a batch of 1,000 refused commands makes %d entries, the latest %+v", n, b.audits.latest()[0])
	}
	for range maxRefused + 5 {
		b.do("SELECT 1")
	}
	if n := len(b.audits.writes.rows); n != maxAudit || len(b.audits.refused.rows) != maxRefused {
		t.Errorf("%d writes and %d refused calls", n, len(b.audits.refused.rows))
	}
}

func TestTheAuditAndItsLogHaveCleanLines(t *testing.T) {
	const user = "ann\x1b[2J"
	var log bytes.Buffer
	b := newBench(t, Options{Access: func(*http.Request) (string, bool) { return user, true },
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	b.admin("ACL", "SETUSER", user, "on", "nopass", "+@all", "-get", "~*")
	eval := `{"db":0,"argv":[{"t":"EVAL"},{"t":"return {ok='x\\27[2J'}"},{"t":"0"}]}`
	if status, body := b.ask("POST", "api/do", eval); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if row := b.audits.latest()[0]; row.Result != "x_[2J" {
		t.Errorf("the audit has %q", row.Result)
	}
	batch := `{"db":0,"cmds":[[{"t":"GET"},{"t":"k"}],[{"t":"GET"},{"t":"k"}]]}`
	if status, body := b.ask("POST", "api/batch", batch); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if n := strings.Count(log.String(), "user=ann_[2J "); n != 3 || strings.Contains(log.String(), "x1b") {
		t.Errorf("%d entries: %s", n, log.String())
	}
}

func TestAReadOnlyConsoleIsSoInScripts(t *testing.T) {
	b := newBench(t, Options{ReadOnly: true})
	b.admin("CONFIG", "SET", "slowlog-log-slower-than", "0")
	b.admin("SET", "k", "v")
	b.admin("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='reset', flags={'no-writes'}, "+
		"callback=function() return redis.call('slowlog', 'reset') end}")
	before := b.admin("SLOWLOG", "LEN").Int
	for _, cmd := range []string{
		`[{"t":"EVAL_RO"},{"t":"return redis.call('slowlog','reset')"},{"t":"0"}]`,
		`[{"t":"FCALL_RO"},{"t":"reset"},{"t":"0"}]`,
	} {
		status, body := b.ask("POST", "api/do", `{"db":0,"argv":`+cmd+`}`)
		if status != 200 || !strings.Contains(body, "READONLY the console is read-only") {
			t.Errorf("%s: %d %s", cmd, status, body)
		}
	}
	if after := b.admin("SLOWLOG", "LEN").Int; after < before {
		t.Errorf("the slow log has %d entries, and had %d", after, before)
	}
	if n := len(b.audits.refused.rows); n != 2 {
		t.Errorf("%d refused calls are in the audit", n)
	}
	reads := `{"db":0,"argv":[{"t":"EVAL_RO"},{"t":"return redis.call('get',KEYS[1])"},{"t":"1"},{"t":"k"}]}`
	if status, body := b.ask("POST", "api/do", reads); status != 200 || !strings.Contains(body, `"t":"v"`) {
		t.Errorf("a script that reads: %d %s", status, body)
	}
}

func TestEveryActionIsACommand(t *testing.T) {
	b := newBench(t, Options{})
	for action, examples := range actions {
		for _, line := range examples {
			if b.specOf(argv(line)) == nil {
				t.Errorf("%s: the server refuses %s: %v", action, line, b.admin(strings.Fields(line)...))
			}
		}
	}
}
