package modeltest

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

var (
	diffTime   = flag.Duration("diff.time", 0, "how long random sequences are compared with each server; 0: a fixed number of rounds")
	diffSeed   = flag.Uint64("diff.seed", 0, "the seed of the first sequence; 0: see package draw")
	diffLen    = flag.Int("diff.len", 100, "operations in a sequence")
	diffServer = flag.String("diff.server", "", "the program to compare with, of package realserver; empty: each")
	diffFaults = flag.Int("diff.faults", mostFaults, "after how many faults a campaign ends")
)

// diffRounds is the number of sequences for each server without a flag.
const diffRounds = 20

// confirmations is the number of times that a sequence runs again before a fault counts as one that passes. chance is the number of
// sequences in which one such fault is allowed, and one more: both servers have real clocks, and a deadline of some ms passes between their
// replies in one of 500 to 700 sequences. Only a sequence that sets such a deadline before the fault has this excuse.
const confirmations, chance = 3, 100

// mostFaults is after how many a campaign ends.
const mostFaults = 5

// long is from which duration on a campaign must have had each command answered.
const long = 10 * time.Minute

func TestRandomSequencesAreAnsweredAsByRealServers(t *testing.T) {
	known := false
	for _, program := range compat.All.Programs() {
		if *diffServer != "" && *diffServer != program {
			continue
		}
		known = true
		t.Run(program, func(t *testing.T) { compareWith(t, program) })
	}
	if !known {
		t.Errorf("-diff.server %s: want one of %q", *diffServer, compat.All.Programs())
	}
}

func compareWith(t *testing.T, program string) {
	in, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	server := compat.Of(program)
	peer := realserver.NewProcess(t, program, "--save", "", "--enable-debug-command", "yes")
	peer.Start()
	c := &Campaign{Ours: in.Addr, Theirs: peer.Addr(), Server: server}
	if c.table, err = servercmd.DefaultTable(); err != nil {
		t.Fatal(err)
	}
	if c.allowances, err = allowed(server); err != nil {
		t.Fatal(err)
	}
	both := c.common(t)
	c.fields = both("hpexpiretime")
	payloads, err := c.payloads()
	if err != nil {
		t.Fatal(err)
	}
	replica, err := NewReplica()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Close)

	tally := NewTally()
	from := draw.Seed(t, *diffSeed)
	passing, faults, crashes := 0, 0, 0
	for round := range draw.Rounds(*diffTime, diffRounds) {
		if faults >= *diffFaults {
			break
		}
		seed := from + uint64(round)
		g := NewGenerator(seed, c.table, both)
		g.Server, g.Payloads, g.Library = server, payloads[1:], payloads[0]
		c.Small, c.RESP3 = seed%2 == 0, seed%4 >= 2
		seq := g.Sequence(*diffLen)
		c.tally = tally
		fault, err := c.Run(seq)
		c.tally = nil
		if err != nil && ended(peer) && crashes < mostCrashes {
			crashes++
			seq = Shrink(seq, 100, func(s []Op) bool {
				restart(peer)
				_, err := c.Run(s)
				return err != nil && ended(peer)
			})
			restart(peer)
			t.Logf("seed %d: %s crashed: %v\n%s", seed, server, err, strings.Join(lines(seq), "\n"))
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := replica.Follow(in.DB); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tally.Sequences++
		if fault == nil {
			continue
		}
		if !c.confirm(seq) {
			passing++
			report := t.Errorf
			if setsSoon(seq[:min(fault.At+1, len(seq))]) && passing <= 1+tally.Sequences/chance {
				report = t.Logf
			}
			report("this difference did not show in any of %d more runs: %s", confirmations, Report(server.String(), fault, seq, seed))
			continue
		}
		seq = Shrink(seq, 300, func(s []Op) bool { f, err := c.Run(s); return err == nil && f != nil })
		for range 5 {
			if f, err := c.Run(seq); err == nil && f != nil {
				fault = f
				break
			}
		}
		faults++
		t.Error(Report(server.String(), fault, seq, seed))
	}
	t.Logf("%s: %d faults, %d more did not show again; %d sequences crashed it; %s", server, faults, passing, crashes, tally)
	missing := tally.Missing(c.table, both)
	if len(missing) > 0 {
		t.Logf("not answered without an error: %q", missing)
	}
	if len(missing) > 0 && *diffTime >= long && faults < *diffFaults {
		t.Errorf("%d commands of both servers were not answered once without an error", len(missing))
	}
}

// mostCrashes is the number of crashes of the other server that a campaign outlives.
const mostCrashes = 50

// ended reports whether a server that has closed a connection is about to end.
func ended(p *realserver.Process) bool {
	select {
	case <-p.Ended():
		return true
	case <-time.After(patience / 12):
		return false
	}
}

func restart(p *realserver.Process) {
	p.Kill()
	p.Start()
}

// lines are the requests of a sequence.
func lines(seq []Op) (out []string) {
	for _, o := range seq {
		out = append(out, fmt.Sprintf("  %d> %s", o.Conn, transcript.Line(o.Args)))
	}
	return out
}

// confirm reports whether a sequence fails each time.
func (c *Campaign) confirm(seq []Op) bool {
	for range confirmations {
		if f, err := c.Run(seq); err != nil || f == nil {
			return false
		}
	}
	return true
}

// payloads have ebb dump its functions, and then a value of each type.
func (c *Campaign) payloads() (out []string, err error) {
	e, err := open(c.Ours, false, false)
	if err != nil {
		return nil, err
	}
	defer e.close()
	for _, args := range [][]string{{"FUNCTION", "FLUSH"}, {"FUNCTION", "LOAD", library}} {
		if _, err := e.conns[0].do(args...); err != nil {
			return nil, err
		}
	}
	v, err := e.conns[0].do("FUNCTION", "DUMP")
	if err != nil {
		return nil, err
	}
	out = append(out, v.Str)
	for _, args := range [][]string{
		{"SET", "k", "text"}, {"SET", "k", "41"}, {"RPUSH", "k", "a", "b", "3"}, {"SADD", "k", "1", "2", "3"}, {"SADD", "k", "a", "b"},
		{"HSET", "k", "a", "1", "b", "x"}, {"ZADD", "k", "1", "a", "2.5", "b"}, {"XADD", "k", "1-1", "a", "1"}, {"PFADD", "k", "a", "b"},
		{"GEOADD", "k", "13.361389", "38.115556", "Palermo"},
	} {
		if _, err := e.conns[0].do("DEL", "k"); err != nil {
			return nil, err
		}
		if _, err := e.conns[0].do(args...); err != nil {
			return nil, err
		}
		v, err := e.conns[0].do("DUMP", "k")
		if err != nil {
			return nil, err
		}
		out = append(out, v.Str)
	}
	return append(out, "damaged"), nil
}

// common learns which commands both ends have.
func (c *Campaign) common(t *testing.T) func(name string) bool {
	t.Helper()
	known := map[string]int{}
	for _, addr := range []string{c.Ours, c.Theirs} {
		p, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for id := range c.table.Len() {
			name := c.table.Spec(id).Name
			v, err := p.do("COMMAND", "INFO", name)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Elems) == 1 && !v.Elems[0].IsNull() {
				known[name]++
			}
		}
	}
	c.HasDigest = c.Server == compat.Redis7
	musts := []string{"psubscribe", "publish", "config|set", "hello", "select", "type", "pexpiretime", "flushall", "debug"}
	if i := slices.IndexFunc(musts, func(name string) bool { return known[name] < 2 }); i >= 0 {
		t.Fatalf("one of the two servers does not know %s", musts[i])
	}
	return func(name string) bool { return known[name] == 2 }
}

func TestOnlyADeadlineThatPassesExcusesASequence(t *testing.T) {
	for line, want := range map[string]bool{
		"SET k v PX 30": true, "SET k v PX 31": false, "SET k 30": false, "pexpire k 1 NX": true, "GETEX k PXAT 30": false, "PSETEX k 7 v": true,
		"HPEXPIRE h 5 FIELDS 1 a": true, "EXPIRE k 30": false, "FCALL call 0 PEXPIRE k 9": true,
	} {
		if got := setsSoon([]Op{{Wait: time.Millisecond}, {Args: strings.Fields(line)}}); got != want {
			t.Errorf("%.40s: %v, want %v", line, got, want)
		}
	}
}
