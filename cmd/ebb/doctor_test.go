package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

// runDoctor runs `ebb doctor` and returns its report and exit status.
func runDoctor(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	var said bytes.Buffer
	cmd := doctorCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	err := cmd.ExecuteContext(t.Context())
	var exit exitStatus
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", args, err)
	}
	return said.String(), int(exit)
}

// doctorOn compares the reports on a well configured server and on the same server with five faults.
func doctorOn(t *testing.T, product, url string, target loadgen.Target) {
	c, err := target.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	do := func(args ...any) {
		t.Helper()
		v, err := c.Do(t.Context(), args...)
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do("CONFIG", "SET", "maxmemory", "100mb", "save", "3600 1")
	do("SET", "k", "v", "EX", 100)
	out, status := runDoctor(t, url)
	t.Logf("%s, healthy (status %d):\n%s", product, status, out)
	if strings.Contains(out, "act ") || status > 1 || !strings.Contains(out, "ok    server       "+product+" ") ||
		strings.Contains(out, "look  memory") {
		t.Errorf("the report on a healthy server, status %d:\n%s", status, out)
	}

	do("CONFIG", "SET", "maxmemory", "0", "save", "", "maxclients", "100", "maxmemory-policy", "volatile-lru", "slowlog-log-slower-than", "0")
	do("DEL", "k")
	do("SET", "forever", "v")
	do("CONFIG", "SET", "notify-keyspace-events", "")
	stop := subscribe(t, target, "__keyevent@0__:expired")
	defer stop()
	do("REPLICAOF", "127.0.0.1", "1")
	defer do("REPLICAOF", "NO", "ONE")
	out, status = runDoctor(t, url)
	t.Logf("%s, with faults (status %d):\n%s", product, status, out)
	for _, want := range []string{
		"look  memory", "maxmemory is 0",
		"look  eviction", "volatile-lru",
		"act   events", "notify-keyspace-events is empty", "CONFIG SET notify-keyspace-events Ex",
		"act   replication", "the link to the master 127.0.0.1:1 ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if status != 2 {
		t.Errorf("the status is %d", status)
	}
	sendFixes(t, c, url)
	if out, _ = runDoctor(t, url); strings.Contains(out, "act   events") {
		t.Errorf("after its fixes:\n%s", out)
	}
	do("CONFIG", "SET", "appendonly", "no")
	do("REPLICAOF", "NO", "ONE")
	if out, _ = runDoctor(t, url); !strings.Contains(out, "look  files") || !strings.Contains(out, "neither snapshots nor append-only files") {
		t.Errorf("without files:\n%s", out)
	}

	// A user with the rights from the guide gets the same report as an administrator.
	rights := pageRights(t, product)
	do(append([]any{"ACL", "SETUSER", "ops", "on", ">pw"}, rights...)...)
	all, _ := runDoctor(t, url)
	if out, _ = runDoctor(t, strings.Replace(url, "://", "://ops:pw@", 1)); areas(out) != areas(all) {
		t.Errorf("with %v:\n%s\nwith all rights:\n%s", rights, out, all)
	}

	// A user with few rights gets the findings that these rights allow.
	do("ACL", "SETUSER", "guest", "on", ">pw", "+ping", "+command", "+time")
	out, status = runDoctor(t, strings.Replace(url, "://", "://guest:pw@", 1))
	if status != 1 || !strings.Contains(out, "may not ask everything") || !strings.Contains(out, "ok    clock") {
		t.Errorf("for a guest, status %d:\n%s", status, out)
	}
}

// sendFixes sends the commands of all fixes, except for shell commands.
func sendFixes(t *testing.T, c *conn.Conn, url string) {
	t.Helper()
	out, _ := runDoctor(t, "--json", url)
	var found []struct{ What, Fix string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sent := 0
	for _, f := range found {
		if f.Fix == "" || strings.HasPrefix(f.Fix, "sysctl ") || strings.HasPrefix(f.Fix, "echo ") {
			continue
		}
		for command := range strings.SplitSeq(f.Fix, "; ") {
			var words []any
			for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(command, -1) {
				words = append(words, strings.Trim(word, "'"))
			}
			v, err := c.Do(t.Context(), words...)
			if err == nil {
				err = v.Err()
			}
			if err != nil {
				t.Errorf("the fix of %q: %s: %v", f.What, command, err)
			}
			sent++
		}
	}
	if sent < 3 {
		t.Errorf("only %d commands in the fixes of %s", sent, out)
	}
}

// pageRights returns the rights that the guide lists.
func pageRights(t *testing.T, product string) (rights []any) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "user needs `")
	text, more, _ := strings.Cut(text, "`")
	if product == "ebb" {
		_, more, _ = strings.Cut(more, "`")
		more, _, _ = strings.Cut(more, "`")
		text += " " + more
	}
	for _, right := range strings.Fields(text) {
		rights = append(rights, right)
	}
	return rights
}

// areas returns the grades and areas of a report.
func areas(report string) string {
	var all []string
	for line := range strings.Lines(report) {
		if f := strings.Fields(line); !strings.HasPrefix(line, " ") && len(f) > 1 {
			all = append(all, f[0]+" "+f[1])
		}
	}
	return strings.Join(all, "\n")
}

// subscribe subscribes on a new connection, until the caller calls stop.
func subscribe(t *testing.T, target loadgen.Target, channel string) (stop func()) {
	t.Helper()
	nc, err := net.Dial(cmp.Or(target.Network, "tcp"), target.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, "SUBSCRIBE "+channel+"\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.ReadValue(bufio.NewReader(nc)); err != nil {
		t.Fatal(err)
	}
	return func() { _ = nc.Close() }
}

func TestDoctorExaminesEbb(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0", "--dir", filepath.Join(t.TempDir(), "data"), "--appendonly", "no")
	doctorOn(t, "ebb", "unix://"+s.socket, loadgen.Target{Network: "unix", Addr: s.socket})
}

// Findings about dead letters of queues: an unbounded queue, a full one, letters dropped because their queue is
// missing, and a stream that accepts no jobs.
func TestDoctorExaminesQueues(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	do := opened(t, loadgen.Target{Network: "unix", Addr: s.socket})
	queues := func() string {
		t.Helper()
		out, _ := runDoctor(t, "unix://"+s.socket)
		var lines []string
		for line := range strings.Lines(out) {
			if strings.Contains(line, " queues ") {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
		}
		return strings.Join(lines, "\n")
	}
	if got := queues(); got != "" {
		t.Errorf("without queues: %s", got)
	}
	do("DQ.CONFIG mail MAXDELIVERIES 1 DEADLETTER {mail}:dead")
	do("DQ.ADD mail a payload")
	if got := queues(); got != "ok queues 1 delay queues, 0 dead letters" {
		t.Errorf("with a healthy queue: %s", got)
	}
	fail := func(queue, id string) { // the queue allows only this delivery
		t.Helper()
		v := do("DQ.POP " + queue)
		if len(v.Elems) != 1 || len(v.Elems[0].Elems) < 3 {
			t.Fatalf("DQ.POP %s: %v", queue, v)
		}
		do("DQ.NACK " + queue + " " + id + " " + v.Elems[0].Elems[3].String())
	}
	fail("mail", "a")
	want := "look queues the dead letters of mail, {mail}:dead, have 1 jobs and no bound"
	if got := queues(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	do("DQ.CONFIG {mail}:dead MAXLEN 1")
	want = "act queues the dead letters of mail, {mail}:dead, are full: 1 jobs"
	if got := queues(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	do("DQ.CONFIG {mail}:dead MAXLEN 10")
	if got := queues(); got != "ok queues 2 delay queues, 1 dead letters" {
		t.Errorf("with bounded dead letters: %s", got)
	}

	do("DQ.CONFIG thumbnails MAXDELIVERIES 1")
	do("DQ.ADD thumbnails b payload")
	fail("thumbnails", "b")
	do("DQ.ADD thumbnails c payload") // a queue without jobs and limits would not exist
	do("SET {feed}:events text")
	do("DQ.CONFIG feed DELIVER {feed}:events")
	do("DQ.ADD feed d payload")
	got := queues()
	for _, want := range []string{"look queues thumbnails has dropped 1 jobs that were delivered too often",
		"act queues feed cannot deliver to the stream {feed}:events: "} {
		if !strings.Contains(got, want) {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

func TestDoctorExaminesRedisAndValkey(t *testing.T) {
	for _, x := range []struct{ program, product string }{{realserver.Redis7, "redis"}, {realserver.Redis8, "redis"},
		{realserver.Valkey9, "valkey"}} {
		t.Run(x.program, func(t *testing.T) {
			addr := realserver.Start(t, x.program)
			doctorOn(t, x.product, "redis://"+addr, loadgen.Target{Addr: addr})
		})
	}
}

// While Redis and Valkey refuse writes or reads, they also refuse PING.
func TestDoctorExaminesAServerThatRefusesPing(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			dir := t.TempDir()
			addr := realserver.Start(t, program, "--save", "3600 1", "--dir", dir)
			c, err := loadgen.Target{Addr: addr}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "full"), 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Do(t.Context(), "BGSAVE"); err != nil {
				t.Fatal(err)
			}
			within, cancel := context.WithTimeout(t.Context(), tier.Patience)
			defer cancel()
			for err = nil; err == nil; err = c.Ping(within) {
			}
			if !strings.Contains(err.Error(), "MISCONF") {
				t.Fatal(err)
			}
			if out, status := runDoctor(t, "redis://"+addr); status != 2 || !strings.Contains(out, "the last snapshot failed") {
				t.Errorf("status %d: %s", status, out)
			}
			replica := realserver.Start(t, program, "--replica-serve-stale-data", "no")
			r, err := loadgen.Target{Addr: replica}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if _, err := r.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1"); err != nil {
				t.Fatal(err)
			}
			if out, status := runDoctor(t, "redis://"+replica); status != 2 || !strings.Contains(out, "the link to the master") {
				t.Errorf("a replica without its master: status %d: %s", status, out)
			}
		})
	}
}

func TestDoctorPrintsJSONAndSaysWhatItCannotReach(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	out, _ := runDoctor(t, "--json", "-s", s.socket)
	var found []struct{ Grade, Area, What string }
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) < 5 || found[0].Area != "server" ||
		found[0].Grade != doctor.OK.String() {
		t.Errorf("%v\n%s", err, out)
	}
	if out, status := runDoctor(t, "nonsense"); status != 3 || !strings.Contains(out, "nothing was examined") {
		t.Errorf("status %d: %s", status, out)
	}
	for _, args := range [][]string{{"redis://127.0.0.1:1", "redis://127.0.0.1:2"}, {"--nosuch"}, {"-p", "x"}} {
		if out, status := runDoctor(t, args...); status != 3 || !strings.Contains(out, "nothing was examined") {
			t.Errorf("%q: status %d: %s", args, status, out)
		}
	}
	t.Setenv("REDISCLI_AUTH", "of-another-server") // redis-cli continues in this case, too
	if out, status := runDoctor(t, "-s", s.socket); status == 3 || !strings.Contains(out, "ok    server") {
		t.Errorf("with REDISCLI_AUTH, status %d: %s", status, out)
	}
	if out, status := runDoctor(t, "-s", s.socket, "-a", "pw"); status != 3 {
		t.Errorf("with a password of the command line, status %d: %s", status, out)
	}
	t.Setenv("REDISCLI_AUTH", "")
	if out, status := runDoctor(t, "-s", s.socket+".none"); status != 3 || !strings.Contains(out, "cannot be examined") {
		t.Errorf("status %d: %s", status, out)
	}
}

func TestTheDoctorDoesNotWaitForASilentServer(t *testing.T) {
	defer func(d time.Duration) { firstReply = d }(firstReply)
	firstReply = 50 * time.Millisecond
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	out, status := runDoctor(t, "redis://"+silent.Addr().String())
	if status != 3 || !strings.Contains(out, "no reply to PING within 50ms") {
		t.Errorf("status %d: %s", status, out)
	}
}

// A proxy or a frozen disk may pass only the first replies.
func TestTheDoctorDoesNotWaitForAServerThatFallsSilent(t *testing.T) {
	defer func(d time.Duration) { firstReply = d }(firstReply)
	firstReply = 200 * time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	defer func() { ln.Close(); <-served }()
	go func() {
		defer close(served)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			replies := map[string]string{"INFO": "$22\r\nredis_version:7.0.15\r\n\r\n", "COMMAND": "*0\r\n", "PING": "+PONG\r\n"}
			for {
				v, err := wire.ReadValue(in)
				if err != nil || replies[v.Elems[0].Str] == "" {
					break
				}
				_, _ = io.WriteString(c, replies[v.Elems[0].Str])
			}
			_, _ = io.Copy(io.Discard, in) // until the doctor closes the connection
		}
	}()
	out, status := runDoctor(t, "redis://"+ln.Addr().String())
	if status != 3 || !strings.Contains(out, "no reply to CONFIG within 200ms") {
		t.Errorf("status %d: %s", status, out)
	}
}

// Redis and ebb reply LOADING to PING while they load, and BUSY while a script runs for long.
func TestDoctorExaminesAServerThatLoadsOrRunsAScript(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Redis7, "--enable-debug-command", "yes", "--save", "")
	p.Start()
	c, err := loadgen.Target{Addr: p.Addr()}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, args := range [][]any{{"DEBUG", "POPULATE", "20000", "k", "300"}, {"SAVE"}} {
		if _, err := c.Do(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	p.Kill()
	if err := p.Begin("--key-load-delay", "500", "--loading-process-events-interval-bytes", "2048"); err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	out, status := "", 3
	for status == 3 && within.Err() == nil { // the server does not listen yet
		out, status = runDoctor(t, "redis://"+p.Addr())
	}
	if status != 2 || !strings.Contains(out, "it loads its data") {
		t.Errorf("while it loads: status %d: %s", status, out)
	}
	p.Kill()

	addr := realserver.Start(t, realserver.Redis7, "--busy-reply-threshold", "10")
	scripted, err := loadgen.Target{Addr: addr}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = scripted.Do(within, "EVAL", "while true do end", 0)
	}()
	defer func() { cancel(); _ = scripted.Close(); <-ended }()
	for !strings.Contains(out, "runs for long") && within.Err() == nil {
		out, status = runDoctor(t, "redis://"+addr)
	}
	if status != 2 || !strings.Contains(out, "SCRIPT KILL") {
		t.Errorf("while a script runs: status %d: %s", status, out)
	}
}

// The first keys that SCAN returns may lack the locks.
func TestTheDoctorFindsALockAmongManyKeys(t *testing.T) {
	addr := realserver.Start(t, realserver.Redis7, "--enable-debug-command", "yes")
	c, err := loadgen.Target{Addr: addr}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, args := range [][]any{{"DEBUG", "POPULATE", "50000"}, {"SET", "lock:x", "me"},
		{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}} {
		if _, err := c.Do(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	if out, _ := runDoctor(t, "redis://"+addr); !strings.Contains(out, "keys with names of locks") {
		t.Error(out)
	}
}

// opened returns a function that runs command lines on a server for one test, in one of its databases.
func opened(t *testing.T, target loadgen.Target) func(line string) conn.Value {
	t.Helper()
	c, err := target.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(line string) conn.Value {
		t.Helper()
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, word)
		}
		v, err := c.Do(t.Context(), args...)
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return v
	}
}

// A rule is suspended in a database other than that of the URL; a group is about to miss entries that the rule's
// stream trims.
func TestDoctorExaminesExpiryRules(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	url := "unix://" + s.socket
	do, third := opened(t, loadgen.Target{Network: "unix", Addr: s.socket}), opened(t, loadgen.Target{Network: "unix", Addr: s.socket, DB: 3})
	do("EXPIRY RULE SET seen MATCH k* TO ended MAXLEN 10")
	if out, _ := runDoctor(t, url); !strings.Contains(out, "ok    events       1 expiry rules record expirations") {
		t.Error(out)
	}
	do("XGROUP CREATE ended billing 0 MKSTREAM")
	for range 8 {
		do("XADD ended * key k")
	}
	if out, _ := runDoctor(t, url); strings.Contains(out, "behind") {
		t.Error(out)
	}
	do("XADD ended * key k")
	const behind = "the group billing is 9 entries behind in the stream ended, which keeps 10"
	if out, status := runDoctor(t, url); status == 0 || !strings.Contains(out, behind) {
		t.Errorf("status %d: %s", status, out)
	}
	third("EXPIRY RULE SET unpaid MATCH order:* TO orders")
	third("SET orders text")
	third("SET order:1 v PX 1")
	within, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	for doctor.Info(do("INFO everything").String())["rule_events_suspended"] != "1" && within.Err() == nil {
	}
	if out, status := runDoctor(t, url); status != 2 || !strings.Contains(out, "suspended expiry rules: unpaid of database 3 (") {
		t.Errorf("status %d: %s", status, out)
	}
	third("EXPIRY RULE DEL unpaid")
	if out, _ := runDoctor(t, url); !strings.Contains(out, "look  events       1 expirations were not recorded") {
		t.Errorf("after the rule: %s", out)
	}
}

// On ebb eviction spares values of locks and limiters, which have their own types, but not strings with such names.
func TestDoctorFindsWhatAnEvictingPolicyBreaks(t *testing.T) {
	for _, program := range []string{"ebb", realserver.Redis7} {
		t.Run(program, func(t *testing.T) {
			url, target := "", loadgen.Target{}
			if program == "ebb" {
				s := startServe(t, "--http", "127.0.0.1:0")
				url, target = "unix://"+s.socket, loadgen.Target{Network: "unix", Addr: s.socket}
			} else {
				target.Addr = realserver.Start(t, program)
				url = "redis://" + target.Addr
			}
			do := opened(t, target)
			has := func(when, text string, want bool) {
				t.Helper()
				if out, _ := runDoctor(t, url); strings.Contains(out, text) != want {
					t.Errorf("%s: %q is in it: %v, want %v:\n%s", when, text, !want, want, out)
				}
			}
			const locks, limiters = "keys with names of locks", "keys with names of limiters"
			do("CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru")
			if program == "ebb" {
				do("LOCK.ACQUIRE lock:a me 60000")
				do("RL.TAKE limit:a 5 60000")
				has("with a lock of ebb", locks, false)
			}
			do("SET lock:b me NX EX 60")
			has("with a string as a lock", locks, true)
			do("CONFIG SET maxmemory-policy volatile-lru")
			has("with limiters that are spared, or without", limiters, false)
			do("SET ratelimit:b 1 EX 60")
			has("with a string as a limiter", limiters, true)
			if program == "ebb" {
				do("CONFIG SET maxmemory-protect lock")
				has("with limiters that are not spared", "maxmemory-protect is lock", true)
			}
		})
	}
}

func TestDoctorFindsALargeValue(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	for _, x := range []struct {
		program, url string
		target       loadgen.Target
	}{
		{"ebb", "unix://" + s.socket, loadgen.Target{Network: "unix", Addr: s.socket}},
		{realserver.Redis7, "", loadgen.Target{}},
	} {
		t.Run(x.program, func(t *testing.T) {
			if x.program != "ebb" {
				x.target.Addr = realserver.Start(t, x.program)
				x.url = "redis://" + x.target.Addr
			}
			do := opened(t, x.target)
			do("SET small v")
			elements := strings.Repeat(" e", 10_000)
			for range 100 {
				do("RPUSH feed" + elements)
			}
			if out, _ := runDoctor(t, x.url); !strings.Contains(out, "ok    values       none of 2 keys has more than 1000000 elements") {
				t.Error(out)
			}
			do("RPUSH feed e")
			const found = "look  values       more than 1000000 elements, of 2 keys: feed (list, 1000001)"
			if out, _ := runDoctor(t, x.url); !strings.Contains(out, found) {
				t.Error(out)
			}
		})
	}
}
