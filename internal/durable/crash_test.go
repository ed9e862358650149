package durable

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"pgregory.net/rapid"
)

// plan is a random life of a Keeper, drawn before it is lived: rapid draws outside
// the bubble.
type plan struct {
	seed   uint64
	fsync  string
	steps  []byte
	dies   int  // after this number of changes of the disk; -1: at the end
	power  bool // by a power cut, else by kill -9
	faults []crashfs.Fault
}

// The steps.
const (
	stepSet = iota
	stepSetTwo
	stepDel
	stepAck
	stepRewrite
	stepSave
	stepWait // for the Keeper to do what it has begun
	stepSecond
	stepSwitch // appendonly off and on
	stepReload
	stepLoadAOF
)

// stepsDrawn has the steps as often as they are to be drawn.
var stepsDrawn = []byte{stepSet, stepSetTwo, stepDel, stepAck, stepAck, stepAck, stepAck, stepRewrite, stepSave,
	stepWait, stepSecond, stepSwitch,
	stepReload, stepLoadAOF}

func drawPlan(t *rapid.T) plan {
	p := plan{
		seed:  rapid.Uint64().Draw(t, "seed"),
		fsync: rapid.SampledFrom([]string{"always", "always", "everysec", "no"}).Draw(t, "fsync"),
		steps: rapid.SliceOfN(rapid.SampledFrom(stepsDrawn), 1, 60).Draw(t, "steps"),
		dies:  rapid.IntRange(-1, 150).Draw(t, "dies"),
		power: rapid.Bool().Draw(t, "power"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		p.faults = append(p.faults, crashfs.Fault{
			Op: rapid.SampledFrom([]crashfs.Op{crashfs.OpSync, crashfs.OpSync, crashfs.OpSync, crashfs.OpWrite, crashfs.OpCreate, crashfs.OpRename,
				crashfs.OpSyncDir, crashfs.OpTruncate, crashfs.OpRemove}).Draw(t, "op"),
			Skip:  rapid.IntRange(0, 30).Draw(t, "skip"),
			Times: rapid.IntRange(1, 3).Draw(t, "times"),
			Err:   rapid.SampledFrom([]error{syscall.EIO, syscall.ENOSPC}).Draw(t, "err"),
			Short: rapid.IntRange(0, 20).Draw(t, "short"),
		})
	}
	return p
}

// life is a plan that is lived.
type life struct {
	w       *world
	states  []map[string]string // after each write
	acked   int                 // the newest state that was acknowledged under always
	stopped bool
	partial bool  // a reload has failed
	wrong   error // what has gone wrong so far
}

func (l *life) note(change func(map[string]string)) {
	next := maps.Clone(l.states[len(l.states)-1])
	change(next)
	l.states = append(l.states, next)
}

func (l *life) step(t *testing.T, i int, s byte) {
	w, key, val := l.w, "k"+strconv.Itoa(i%5), strconv.Itoa(i)
	if (w.refusal() != "" || l.partial) && s <= stepAck {
		return // as the commands do
	}
	switch s {
	case stepSet:
		w.set(key, val)
		l.note(func(m map[string]string) { m[key] = val })
	case stepSetTwo:
		w.set(key, val, "other", val)
		l.note(func(m map[string]string) { m[key], m["other"] = val, val })
	case stepDel:
		w.del(key)
		l.note(func(m map[string]string) { delete(m, key) })
	case stepAck:
		mark := w.set(key, val)
		l.note(func(m map[string]string) { m[key] = val })
		if n := len(l.states) - 1; w.acked(mark) {
			l.acked = n
		}
	case stepRewrite:
		_, _ = w.k.RewriteAOF()
	case stepSave:
		_, _ = w.k.BackgroundSave(true)
	case stepWait:
		settle(150 * time.Millisecond)
	case stepSecond:
		w.clock.Advance(2 * time.Second)
		settle(2 * time.Second)
	case stepSwitch:
		if !l.stopped {
			_ = w.k.SetAppendOnly(false)
			synctest.Wait()
			l.acked = 0
			if w.k.SetAppendOnly(true) == nil {
				settle(10 * time.Second)
			}
			l.stopped = !w.k.AppendOnly()
		}
	case stepReload:
		l.reloaded(w.k.Reload(t.Context(), ReloadOptions{}))
	case stepLoadAOF:
		if !l.stopped {
			l.reloaded(w.k.LoadAOF(t.Context()))
		}
	}
}

// reloaded checks that a reload has changed nothing. After a failed one the data differs,
// and no client can read it.
func (l *life) reloaded(err error) {
	switch got := contents(l.w); {
	case errors.Is(err, ErrPartial):
		l.stopped, l.partial = true, true
	case l.partial: // a second one fails early, and what was lost in memory stays lost
	case !maps.Equal(got, l.states[len(l.states)-1]):
		l.wrong = fmt.Errorf("after a reload (%v) there is %v, was %v", err, got, l.states[len(l.states)-1])
	}
}

// holds reports whether a state is there that was acknowledged, or a later one.
func (l *life) holds(w *world) error {
	got := contents(w)
	for _, s := range l.states[l.acked:] {
		if maps.Equal(s, got) {
			return nil
		}
	}
	return fmt.Errorf("after the restart there is %v; the acknowledged state %d of %d was %v", got, l.acked,
		len(l.states)-1, l.states[l.acked])
}

// live lives a plan and returns what is wrong with what is left.
func live(t *testing.T, p plan) error {
	fs := newFS(p.seed)
	w := newWorld(fs, clock.NewManual(start), "appendonly", "yes", "appendfsync", p.fsync, "auto-aof-rewrite-min-size", "400")
	if err := w.open(t); err != nil {
		return err
	}
	l := &life{w: w, states: []map[string]string{{}}}
	for _, f := range p.faults {
		fs.Inject(f)
	}
	if p.dies >= 0 {
		fs.DieAfter(p.dies)
	}
	for i, s := range p.steps {
		l.step(t, i, s)
	}
	if l.wrong != nil {
		return errors.Join(l.wrong, w.close())
	}
	if p.power {
		fs = fs.Crash()
	} else {
		fs = fs.Kill()
	}
	_ = w.close()
	return again(t, l, fs)
}

// again starts twice on what is left: the second start is after a clean end.
func again(t *testing.T, l *life, fs *crashfs.FS) error {
	for round := range 2 {
		w := newWorld(fs, clock.NewManual(start.Add(time.Hour/2)), "appendonly", "yes", "appendfsync", "always")
		err := w.open(t)
		if err == nil {
			err = l.holds(w)
		}
		if err == nil && !w.acked(w.set("k1", "again"+strconv.Itoa(round))) {
			err = errors.New("a write after the restart is not acknowledged")
		}
		l.note(func(m map[string]string) { clear(m); maps.Copy(m, contents(w)) })
		l.acked = len(l.states) - 1
		if err2 := w.close(); err == nil {
			err = err2
		}
		if err != nil {
			return fmt.Errorf("start %d: %w", round+1, err)
		}
	}
	return nil
}

func contents(w *world) map[string]string {
	m := map[string]string{}
	for _, k := range []string{"k0", "k1", "k2", "k3", "k4", "other"} {
		if v := w.get(k); v != "" {
			m[k] = v
		}
	}
	return m
}

// Whenever the process ends, by a power cut or a kill, with or without a disk that
// fails before, what was acknowledged under always is there after the next start,
// and so is all before it.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	var lives, points int
	draw.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var err error
		synctest.Test(t, func(t *testing.T) { err = live(t, p) })
		if err != nil {
			rt.Fatalf("%v\n%+v", err, p)
		}
		lives++
		if p.dies >= 0 {
			points++
		}
	})
	t.Logf("%d lives, %d of which ended at a drawn change to the disk", lives, points)
}

// A power cut under everysec takes what was written in the last second, and in the
// sync that was under way.
func TestEverySecLosesASecond(t *testing.T) {
	var longest time.Duration
	writes := 0
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			fs := newFS(seed)
			w := newWorld(fs, clock.NewManual(start), "appendonly", "yes", "appendfsync", "everysec")
			if err := w.open(t); err != nil {
				t.Fatal(err)
			}
			var at []time.Time
			for range 1 + seed*37%500 {
				at = append(at, time.Now())
				w.set("k0", strconv.Itoa(len(at)))
				settle(10 * time.Millisecond)
			}
			died := time.Now()
			fs = fs.Crash()
			_ = w.close()
			w = newWorld(fs, clock.NewManual(start), "appendonly", "yes", "appendfsync", "everysec")
			if err := w.open(t); err != nil {
				t.Fatal(err)
			}
			there, _ := strconv.Atoi(w.get("k0")) // nothing is there before the first sync
			if there < len(at) {
				longest = max(longest, died.Sub(at[there]))
			}
			writes += len(at)
			if err := w.close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("100 power cuts, %d writes; age of the oldest write that was lost: %v", writes, longest)
	if longest == 0 || longest > 1100*time.Millisecond {
		t.Errorf("the oldest write that was lost was %v old", longest)
	}
}

// crashSeeds is the number of schedules for each moment at which the disk dies.
func crashSeeds() uint64 {
	if tier.Short() {
		return 1
	}
	return 4
}

// A rewrite may be interrupted at any of its changes to the disk.
func TestARewriteMayEndAnywhere(t *testing.T) {
	for _, power := range []bool{true, false} {
		for dies := range 40 {
			for seed := range crashSeeds() {
				p := plan{seed: seed, fsync: "always", dies: dies, power: power,
					steps: []byte{stepAck, stepSetTwo, stepAck, stepRewrite, stepAck, stepSetTwo, stepAck, stepWait, stepAck}}
				synctest.Test(t, func(t *testing.T) {
					if err := live(t, p); err != nil {
						t.Errorf("%+v: %v", p, err)
					}
				})
			}
		}
	}
}

// So may the rewrite that heals a failed sync.
func TestHealingMayEndAnywhere(t *testing.T) {
	for dies := range 50 {
		for seed := range crashSeeds() {
			p := plan{seed: seed, fsync: "always", dies: dies, power: true,
				faults: []crashfs.Fault{{Op: crashfs.OpSync, Name: "incr.aof", Skip: 2, Times: 1, Err: syscall.EIO}},
				steps:  []byte{stepAck, stepSetTwo, stepAck, stepSetTwo, stepAck, stepSecond, stepAck, stepSecond, stepAck}}
			synctest.Test(t, func(t *testing.T) {
				if err := live(t, p); err != nil {
					t.Errorf("%+v: %v", p, err)
				}
			})
		}
	}
}
