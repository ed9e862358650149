package routing

import "testing"

func BenchmarkFind(b *testing.B) {
	for _, name := range []string{"GET", "set", "LOCK.ACQUIRE", "EVALSHA", "FT.SEARCH"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Find(name, "k")
			}
		})
	}
}

func BenchmarkKeys(b *testing.B) {
	words := []string{"EVALSHA", "0123456789", "1", "key", "arg", "arg"}
	word := func(i int) string { return words[i] }
	b.ReportAllocs()
	for b.Loop() {
		Of(len(words), word).FirstKey(len(words), word)
	}
}
