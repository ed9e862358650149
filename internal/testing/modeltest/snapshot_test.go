package modeltest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

var (
	snapTime = flag.Duration("snap.time", 0, "how long snapshots are taken during random sequences; 0: a fixed number of rounds")
	snapSeed = flag.Uint64("snap.seed", 0, "the seed of the first sequence; 0: see package draw")
)

// snapRounds is the number of sequences without a flag.
const snapRounds = 30

// Whatever happens while a snapshot is written: the file holds what there was at the
// cut, and with the effects since then it gives what there is at the end.
func TestSnapshotsDuringRandomSequences(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	from := draw.Seed(t, *snapSeed)
	sequences, faults := 0, 0
	for round := range draw.Rounds(*snapTime, snapRounds) {
		if faults >= mostFaults {
			break
		}
		seed := from + uint64(round)
		mode := ownMode{small: seed%2 == 0, evicts: seed%5 == 0}
		ops := NewOwnGenerator(seed, table).Sequence(*ownLen)
		sequences++
		first := playSnapshot(ops, mode)
		if first == nil {
			continue
		}
		faults++
		err := first
		ops = Shrink(ops, 400, func(ops []Op) bool {
			err := playSnapshot(ops, mode)
			return err != nil && sameFault(err, first)
		})
		if again := playSnapshot(ops, mode); again != nil {
			err = again
		}
		t.Errorf("-snap.seed %d: %v\n%s", seed, err, showOps(ops))
	}
	t.Logf("%d sequences", sequences)
}

// slowFile writes nothing before turn is closed.
type slowFile struct {
	bytes.Buffer
	turn chan struct{}
}

func (f *slowFile) Write(b []byte) (int, error) {
	<-f.turn
	return f.Buffer.Write(b)
}

// playSnapshot plays a sequence, and takes a snapshot from a third of it on: first
// only what is about to change is saved, then the walk continues beside the rest.
func playSnapshot(ops []Op, mode ownMode) (err error) {
	var options []string
	if mode.small {
		options = []string{"--hash-max-listpack-entries", "4", "--set-max-intset-entries", "5", "--set-max-listpack-entries", "4",
			"--zset-max-listpack-entries", "4", "--list-max-listpack-size", "3", "--stream-node-max-entries", "3"}
	}
	p := &ownPlay{memory: Memory{}, asked: map[int][][]string{}, words: map[string]bool{}, evicts: mode.evicts}
	if p.e, err = transcript.NewEngine(options...); err != nil {
		return err
	}
	if p.replica, err = NewReplica(); err != nil {
		return err
	}
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		} else if err == nil || !strings.Contains(err.Error(), "panic") {
			p.e.Close()
			p.replica.Close()
		}
	}()
	if err := p.limit(true); err != nil {
		return err
	}
	cut := len(ops) / 3
	if err := p.playAll(ops[:cut]); err != nil {
		return err
	}
	if err := p.replica.Run(p.e.DB); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	s := p.begin()
	until := cut + (len(ops)-cut)*2/3
	err = p.playAll(ops[cut:until])
	close(s.file.turn) // the walk begins
	if err == nil {
		err = p.playAll(ops[until:])
	}
	if e := <-s.done; err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return p.lookAtFile(s.file.Bytes())
}

// playAll plays a part of a sequence.
func (p *ownPlay) playAll(ops []Op) error {
	for i, o := range ops {
		if o.Wait == 0 && !o.Hangup && o.Args == nil {
			continue
		}
		var err error
		if o.Wait > 0 {
			err = p.e.Advance(o.Wait)
			p.drain()
		} else {
			err = p.step(o)
		}
		if err != nil {
			return fmt.Errorf("%w\nafter operation %d, %s", err, i, strings.TrimSpace(showOps(ops[i:i+1])))
		}
	}
	return nil
}

// playedSnapshot is a snapshot under way.
type playedSnapshot struct {
	file slowFile
	done chan error
}

// begin begins a snapshot, which has cut when it returns.
func (p *ownPlay) begin() *playedSnapshot {
	s := &playedSnapshot{file: slowFile{turn: make(chan struct{})}, done: make(chan error, 1)}
	cut := make(chan struct{})
	w := rdb.NewWriter(&s.file, rdb.WriterOptions{Checksum: true})
	go func() {
		err := p.e.DB.Snapshot(context.Background(), w, engine.SnapshotOptions{
			AtCut: func(*engine.Tx) { close(cut) },
			Preamble: func(w *rdb.Writer, version int) error {
				w.Header(version)
				return w.Flush() // which waits
			},
		})
		if err == nil {
			err = w.End()
		}
		s.done <- err
	}()
	<-cut
	return s
}

// lookAtFile compares the file with the replica, which has the effects up to the
// cut, and then with the engine, after the effects since.
func (p *ownPlay) lookAtFile(file []byte) error {
	second, err := NewReplica()
	if err != nil {
		return err
	}
	defer second.Close()
	r := rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{Aux: func(name, text []byte) error {
		_, err := second.db.LoadAux(name, text)
		return err
	}})
	if err := second.db.Load(context.Background(), r, engine.LoadOptions{KeepExpired: true, Workers: 2}); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if err := second.db.Check(); err != nil {
		return fmt.Errorf("loaded: %w", err)
	}
	want, _ := dump(p.replica.db, true, p.now())
	got, _ := dump(second.db, true, p.now())
	if diff := differ(want, got, p.now()); len(diff) > 0 {
		return fmt.Errorf("cut: the file differs from the keyspace at the cut:\n  %s", strings.Join(diff, "\n  "))
	}
	if err := p.e.DB.Check(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if err := p.meetAll(); err != nil {
		return err
	}
	if err := second.Follow(p.e.DB); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	return nil
}

// meetAll has everything that is dead looked up, and so removed with its effects,
// even where nothing is reclaimed.
func (p *ownPlay) meetAll() error {
	if err := p.limit(false); err != nil {
		return err
	}
	for i := range databases {
		if _, err := p.ask("SELECT", strconv.Itoa(i)); err != nil {
			return err
		}
		if _, err := p.ask(append([]string{"EXISTS", "told"}, slices.Sorted(maps.Keys(p.words))...)...); err != nil {
			return err
		}
	}
	return nil
}

// differ lists what differs between two keyspaces, but for what is dead.
func differ(want, got map[place]item, now int64) (diff []string) {
	for at, w := range want {
		g, ok := got[at]
		slid := w.span > 0 && w.span == g.span && max(g.deadline-w.deadline, w.deadline-g.deadline) <= w.span/10+1
		switch dead := w.deadline != 0 && w.deadline < now; {
		case !ok && !dead:
			diff = append(diff, fmt.Sprintf("db%d %q: is missing: %s", at.db, at.key, w))
		case ok && !dead && (g.kind != w.kind || g.value != w.value || g.span != w.span || g.fresh != w.fresh ||
			g.deadline != w.deadline && !slid):
			diff = append(diff, fmt.Sprintf("db%d %q: %s, want %s", at.db, at.key, g, w))
		}
	}
	for at, g := range got {
		if _, ok := want[at]; !ok && (g.deadline == 0 || g.deadline >= now) {
			diff = append(diff, fmt.Sprintf("db%d %q: should not be there: %s", at.db, at.key, g))
		}
	}
	sort.Strings(diff)
	return diff
}
