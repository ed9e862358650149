package main

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/wheel"
)

// Four strategies to expire keys, in virtual time and without a server: half of the keys fall due
// within a minute, the others live for an hour, and clients read some of them. Each run draws the
// same keys and reads, so all columns but the last are the same on every machine.

const (
	simKeys   = 100_000
	simSpread = int64(60_000) // ms within which half of the keys fall due
	simEnd    = int64(90_000) // ms after which the run ends
	simHour   = int64(3600_000)
	simReads  = 1 // in each ms
)

// strategy decides when keys are removed. It calls gone for each, once.
type strategy interface {
	add(key int, deadline int64)
	read(key int, now int64)
	tick(now int64) // once in each ms
}

// simulation holds the results of one strategy.
type simulation struct {
	deadline []int64 // by key; 0: removed
	stale    int     // due, and still in memory
	peak     int     // the greatest stale so far
	late     []int64 // ms from the deadline to the removal
	took     time.Duration
}

// gone removes a key.
func (s *simulation) gone(key int, now int64) {
	s.late = append(s.late, now-s.deadline[key]-1) // a key is due one ms after its deadline
	s.deadline[key] = 0
	s.stale--
}

func simulate(make func(s *simulation) strategy) *simulation {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &simulation{deadline: make64(simKeys)}
	due := make64(int(simEnd) + 1) // the number of deadlines in each ms
	for key := range simKeys {
		s.deadline[key] = simHour
		if key%2 == 0 {
			s.deadline[key] = 1 + rng.Int64N(simSpread)
			due[s.deadline[key]+1]++
		}
	}
	began := time.Now()
	x := make(s)
	for key, deadline := range s.deadline {
		x.add(key, deadline)
	}
	for now := int64(1); now <= simEnd; now++ {
		s.stale += int(due[now])
		x.tick(now)
		for range simReads {
			x.read(rng.IntN(simKeys), now)
		}
		s.peak = max(s.peak, s.stale)
	}
	s.took = time.Since(began)
	return s
}

func make64(n int) []int64 { return make([]int64, n) }

// strategies prints a row for each.
func strategies(w io.Writer) {
	fmt.Fprintf(w, "%d keys of %d fall due within %d s; simulated, %d reads a second\n", simKeys/2, simKeys, simSpread/1000, 1000*simReads)
	fmt.Fprintf(w, "  %-34s  %s  %s  %s  %s\n", "", "late by p50      p99      max", "most stale", "left stale", "ns a key")
	for _, x := range []struct {
		name string
		make func(s *simulation) strategy
	}{
		{"lazy: removed when it is read", func(s *simulation) strategy { return &lazy{s} }},
		{"sampling: 20 keys, again over 25 %", func(s *simulation) strategy { return newSampling(s) }},
		{"timed: a heap of deadlines", func(s *simulation) strategy { return &timed{s: s} }},
		{"the wheel of ebb", func(s *simulation) strategy { return newWheel(s) }},
	} {
		s := simulate(x.make)
		slices.Sort(s.late)
		at := func(q float64) time.Duration {
			return time.Duration(s.late[int(q*float64(len(s.late)-1))]) * time.Millisecond
		}
		fmt.Fprintf(w, "  %-34s  %11s %8s %8s  %10d  %10d  %8d\n", x.name, at(.5), at(.99), at(1), s.peak, s.stale, s.took.Nanoseconds()/simKeys)
	}
	fmt.Fprintln(w)
}

// lazy removes a key when a client reads it after its deadline.
type lazy struct{ s *simulation }

func (x *lazy) add(int, int64) {}
func (x *lazy) tick(int64)     {}
func (x *lazy) read(key int, now int64) {
	if d := x.s.deadline[key]; d != 0 && d < now {
		x.s.gone(key, now)
	}
}

// sampling is the strategy of Redis, without its limit of time. It is lazy, and ten times
// a second it checks 20 random keys, and 20 more while more than a quarter of them were
// due.
type sampling struct {
	lazy
	keys []int // in memory
	rng  *rand.Rand
}

func newSampling(s *simulation) *sampling {
	return &sampling{lazy: lazy{s}, rng: rand.New(rand.NewPCG(3, 4))}
}

func (x *sampling) add(key int, _ int64) { x.keys = append(x.keys, key) }

func (x *sampling) tick(now int64) {
	if now%100 != 0 {
		return
	}
	for due := 20; due > 5 && len(x.keys) > 0; {
		due = 0
		for range 20 {
			i := x.rng.IntN(len(x.keys))
			key := x.keys[i]
			if x.s.deadline[key] < now { // 0 if a read has removed it
				if x.s.deadline[key] != 0 {
					x.s.gone(key, now)
					due++
				}
				x.keys[i] = x.keys[len(x.keys)-1]
				if x.keys = x.keys[:len(x.keys)-1]; len(x.keys) == 0 {
					break
				}
			}
		}
	}
}

// timed keeps all deadlines in a heap: each insertion costs O(log n).
type timed struct {
	s *simulation
	h deadlines
}

func (x *timed) add(key int, deadline int64) { heap.Push(&x.h, due{deadline, key}) }
func (x *timed) read(int, int64)             {}
func (x *timed) tick(now int64) {
	for len(x.h) > 0 && x.h[0].deadline < now {
		x.s.gone(heap.Pop(&x.h).(due).key, now)
	}
}

type due struct {
	deadline int64
	key      int
}

type deadlines []due

func (h deadlines) Len() int           { return len(h) }
func (h deadlines) Less(i, j int) bool { return h[i].deadline < h[j].deadline }
func (h deadlines) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *deadlines) Push(x any)        { *h = append(*h, x.(due)) }
func (h *deadlines) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// theWheel is the strategy of ebb: a hierarchical timing wheel, where each insertion costs
// O(1).
type theWheel struct {
	s *simulation
	w *wheel.Wheel
}

// entries are the wheel's records: reference n is key n-1.
type entries []wheel.Entry

func (e entries) Entry(ref uint32) *wheel.Entry { return &e[ref] }

func newWheel(s *simulation) *theWheel {
	return &theWheel{s, wheel.New(0, make(entries, simKeys+1))}
}

func (x *theWheel) add(key int, deadline int64) { x.w.Add(uint32(key)+1, deadline) }
func (x *theWheel) read(int, int64)             {}
func (x *theWheel) tick(now int64) {
	for next, ok := x.w.Next(); ok && next <= now; next, ok = x.w.Next() {
		x.w.Advance(now, 100, func(ref uint32) { x.s.gone(int(ref)-1, now) })
	}
}
