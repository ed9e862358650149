package oplog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func words(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func TestOwnCommandsBecomeIdleOnesOfTheSameLength(t *testing.T) {
	for n := range 120000 {
		if n > 1100 && n%997 != 0 && (n < 9900 || n > 10030) && (n < 99950 || n > 100020) {
			continue
		}
		own := words("BF.ADD", strings.Repeat("x", n))
		var p Plain
		got, err := p.Next(own)
		if err != nil || len(got) != len(own) {
			t.Fatalf("%d bytes became %d: %v", len(own), len(got), err)
		}
		name := string(nameOf(got))
		if name != "PING" && name != "EXISTS" {
			t.Fatalf("%d bytes became %.60q", len(own), got)
		}
		var again Plain
		if same, err := again.Next(got); err != nil || !bytes.Equal(same, got) || len(again.held) > 0 {
			t.Fatalf("%.60q is not a whole command: %v", got, err)
		}
	}
}

func TestVeryShortOwnCommandsBecomeEmptyLines(t *testing.T) {
	for n := range 8 {
		own := words(strings.Repeat("x", n+1))
		var p Plain
		got, err := p.Next(own)
		if err != nil || len(got) != len(own) || strings.Trim(strings.TrimPrefix(string(got), "*1\r\n$4\r\nPING\r\n"), "\n") != "" {
			t.Errorf("%q became %q: %v", own, got, err)
		}
	}
}

func TestPlainCommandsStayAsTheyAre(t *testing.T) {
	stream := bytes.Join([][]byte{words("SELECT", "3"), words("MULTI"), words("set", "k", "v"), words("EXEC"), words("PING")}, nil)
	var p Plain
	got, err := p.Next(stream)
	if err != nil || &got[0] != &stream[0] || len(got) != len(stream) {
		t.Errorf("%q, %v: want the same bytes, not copied", got, err)
	}
}

// Deadlines of hash fields go to the replicas that know them. A command of another master that a replica does not
// know ends the link, because no other command has the same effect.
func TestNewerCommandsGoToThoseThatKnowThem(t *testing.T) {
	const stays, idle, ends = "stays", "idle", "ends"
	for name, want := range map[string][3]string{ // of Redis 7, Redis 8, Valkey 9
		"HSET": {stays, stays, stays}, "HPEXPIREAT": {idle, stays, stays}, "hpersist": {idle, stays, stays}, "BF.ADD": {idle, idle, idle},
		"SPEXPIREAT": {idle, idle, idle}, "HSETEX": {ends, stays, stays}, "hgetdel": {ends, stays, stays}, "HEXPIRE": {ends, stays, stays},
		"MSETEX": {ends, ends, stays}, "delifeq": {ends, ends, stays}, "EBB.HSETEX": {idle, idle, idle},
	} {
		for i, dialect := range []Dialect{Redis7, Redis8, Valkey9} {
			stream := words(name, "key", "some words, so that it has a length")
			p, got := Plain{Knows: dialect}, idle
			b, err := p.Next(stream)
			switch {
			case errors.Is(err, ErrForeign):
				got = ends
			case err != nil || len(b) != len(stream):
				t.Errorf("%s: %q, %v", name, b, err)
			case bytes.Equal(b, stream):
				got = stays
			}
			if got != want[i] {
				t.Errorf("%s for dialect %d: it %s, want: it %s", name, dialect, got, want[i])
			}
		}
	}
}

func TestAStreamThatBeginsInsideACommandIsRefused(t *testing.T) {
	for _, text := range []string{"k\r\n$1\r\nv\r\n", "$3\r\nSET\r\n", "*1\r\nPING\r\n", "*x\r\n", "*99999999999999999999\r\n"} {
		var p Plain
		if got, err := p.Next([]byte(text)); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestTheStreamMayComeInAnyPieces checks that the output is independent of how the stream is cut, has the same
// length, and has the plain commands at the same offsets.
func TestTheStreamMayComeInAnyPieces(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		var stream, want []byte
		for range rapid.IntRange(0, 20).Draw(t, "commands") {
			name := rapid.SampledFrom([]string{"SET", "BF.ADD", "EBB.RENAME", "MULTI", "EXEC", "HPEXPIREAT", "X", "\n"}).Draw(t, "name")
			if name == "\n" {
				stream, want = append(stream, '\n'), append(want, '\n')
				continue
			}
			args := []string{name}
			for range rapid.IntRange(0, 3).Draw(t, "args") {
				args = append(args, strings.Repeat("*", rapid.IntRange(0, 300).Draw(t, "size")))
			}
			c := words(args...)
			stream = append(stream, c...)
			if stays, _ := new(Plain).stays([]byte(name)); stays {
				want = append(want, c...)
			} else {
				want = appendIdle(want, len(c))
			}
		}
		var p Plain
		var got []byte
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			piece := bytes.Clone(rest[:n])
			out, err := p.Next(piece)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, out...)
			rest = rest[n:]
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	var stream []byte
	for len(stream) < blockSize {
		stream = append(stream, words("SET", "some:key:12345", "a value of some thirty-two bytes")...)
	}
	var p Plain
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		if _, err := p.Next(stream); err != nil {
			b.Fatal(err)
		}
	}
}
