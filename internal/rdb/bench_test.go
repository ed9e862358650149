package rdb

import (
	"fmt"
	"testing"
)

// listpacks are the listpacks of containers like those of bench/cmd/sweep.
func listpacks() map[string][]byte {
	made := map[string][]byte{}
	add := func(name string, n int, item func(p *packer, i int)) {
		var p packer
		p.reset()
		for i := range n {
			item(&p, i)
		}
		made[name] = p.finish()
	}
	hash := func(p *packer, i int) { p.add(fmt.Appendf(nil, "f%02d", i)); p.add(fmt.Appendf(nil, "value:%02d", i)) }
	add("hash 10", 10, hash)
	add("hash 100", 100, hash)
	add("zset 100", 100, func(p *packer, i int) { p.add(fmt.Appendf(nil, "m%02d", i)); p.addInt(int64(i)) })
	add("list 400", 400, func(p *packer, i int) { p.add(fmt.Appendf(nil, "element:%08d", i)) })
	return made
}

func BenchmarkLZF(b *testing.B) {
	for name, src := range listpacks() {
		var table lzfTable
		out, ok := table.packLZF(nil, src)
		if !ok {
			b.Fatal(name)
		}
		b.Run("pack/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			buf := make([]byte, 0, 1<<14)
			for b.Loop() {
				_, _ = table.packLZF(buf, src)
			}
		})
		b.Run("unpack/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			buf := make([]byte, 0, 1<<14)
			for b.Loop() {
				_, _ = unpackLZF(buf, out, len(src))
			}
			b.ReportMetric(float64(len(out)), "packed-bytes")
		})
		b.Run("check/"+name, func(b *testing.B) {
			for b.Loop() {
				_, _ = checkListpack(src)
			}
		})
	}
}

func BenchmarkShortChecksum(b *testing.B) {
	for _, n := range []int{32, 128, 512, 2048, 8192} {
		src := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Checksum(0, src)
			}
		})
	}
}
