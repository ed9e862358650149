package engine

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

var benchKeys = flag.Int("keys", 1<<20, "keys in the benchmarks")

// benchKey writes the i-th 16-byte key into b.
func benchKey(b []byte, i uint64) []byte {
	b = append(b[:0], "key:....00000000"[:16]...)
	binary.BigEndian.PutUint64(b[8:], i*0x9E3779B97F4A7C15)
	return b
}

func BenchmarkRandom(b *testing.B) {
	n := uint64(*benchKeys)
	val := []byte("0123456789abcdef0123456789abcdef")
	var key, buf []byte
	rng := rand.New(rand.NewPCG(1, 2))
	b.Run("map", func(b *testing.B) {
		m := make(map[string][]byte)
		for i := range n {
			m[string(benchKey(key, i))] = append([]byte(nil), val...)
		}
		key := make([]byte, 16)
		b.Run("GET", func(b *testing.B) {
			for b.Loop() {
				key = benchKey(key, rng.Uint64N(n))
				buf = append(buf[:0], m[string(key)]...)
			}
		})
		b.Run("SET", func(b *testing.B) {
			for b.Loop() {
				key = benchKey(key, rng.Uint64N(n))
				copy(m[string(key)], val)
			}
		})
	})
	b.Run("ebb", func(b *testing.B) {
		db := Open(Options{})
		defer db.Close()
		start := time.Now()
		for i := range n {
			key = benchKey(key, i)
			_ = db.set(0, key, val, time.Hour)
		}
		fmt.Printf("load %v per key\n", time.Since(start)/time.Duration(n))
		used, _ := db.HeldMemory()
		fmt.Printf("%.1f bytes per key held, %.1f used\n", float64(used)/float64(n), float64(db.UsedMemory())/float64(n))
		for _, ttl := range []time.Duration{time.Hour, 0} {
			b.Run(fmt.Sprint("GET/ttl=", ttl), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					key = benchKey(key, rng.Uint64N(n))
					buf, _, _ = db.get(0, key, buf[:0])
				}
			})
			b.Run(fmt.Sprint("SET/ttl=", ttl), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					key = benchKey(key, rng.Uint64N(n))
					_ = db.set(0, key, val, ttl)
				}
			})
		}
	})
}

// BenchmarkReclaim expires keys that all share one deadline, a slice at a time.
func BenchmarkReclaim(b *testing.B) {
	clock := &shiftedClock{System: clock.NewSystem()}
	db := Open(Options{Clock: clock, Reclaimers: 1})
	defer db.Close()
	val := []byte("0123456789abcdef0123456789abcdef")
	var key []byte
	var longest, busy time.Duration
	slices := 0
	for b.Loop() {
		at := clock.Micros()/1000 + 3600_000
		for i := range *benchKeys {
			key = benchKey(key, uint64(i))
			tx := db.Begin(0, key)
			_, _, _ = tx.Set(key, val, SetOptions{Deadline: at}, nil)
			tx.Commit()
		}
		clock.shift.Add(3601e6)
		r := db.Reclaimer(0, func() {})
		for gone := false; !gone; {
			start := time.Now()
			r.Run()
			took := time.Since(start)
			longest, busy, slices = max(longest, took), busy+took, slices+1
			gone = db.Keyspace(0).Due == 0
		}
	}
	b.ReportMetric(float64(busy.Nanoseconds())/float64(b.N)/float64(*benchKeys), "ns/key")
	b.ReportMetric(float64(longest.Microseconds()), "us-longest-slice")
	b.ReportMetric(float64(slices)/float64(b.N), "slices")
}

// shiftedClock is a running clock that a benchmark can move ahead.
type shiftedClock struct {
	*clock.System
	shift atomic.Int64
}

func (c *shiftedClock) Micros() int64 { return c.System.Micros() + c.shift.Load() }
