package shard

import (
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/group/directory"
)

func TestGroupStateIsReadAsItWasWritten(t *testing.T) {
	for _, s := range []Saved{{}, {Member: two, Always: true}, {Member: directory.Member{Node: 1<<32 - 1, Incarnation: 1<<64 - 1}}} {
		if got, err := ParseSaved(s.Bytes()); err != nil || got != s {
			t.Errorf("%+v was read as %+v, %v", s, got, err)
		}
	}
}

func TestAHalfWrittenGroupStateIsRefused(t *testing.T) {
	whole := Saved{Member: directory.Member{Node: 300, Incarnation: 1 << 40}, Always: true}.Bytes()
	for i := range whole {
		if _, err := ParseSaved(whole[:i]); !errors.Is(err, ErrSaved) {
			t.Errorf("cut to %d bytes: %v, want ErrSaved", i, err)
		}
		bad := append([]byte(nil), whole...)
		bad[i] ^= 4
		if _, err := ParseSaved(bad); !errors.Is(err, ErrSaved) {
			t.Errorf("byte %d changed: %v, want ErrSaved", i, err)
		}
	}
}

func TestANodeKeepsItsIncarnationIfItProvesThatItLostNothing(t *testing.T) {
	always, lazily := Saved{Member: two, Always: true}.Bytes(), Saved{Member: two}.Bytes()
	for _, c := range []struct {
		name           string
		file           []byte
		always, intact bool
		incarnation    uint64
		kept           bool
	}{
		{"all was synced before it was acknowledged", always, true, true, 1, true},
		{"not all was", lazily, true, true, 2, false},
		{"from now on it will not be", always, false, true, 2, false},
		{"the log was damaged", always, true, false, 2, false},
		{"the file is half-written", always[:6], true, true, 1, false},
		{"there is no file", nil, true, true, 1, false},
		{"the file of another node", Saved{Member: three, Always: true}.Bytes(), true, true, 1, false},
	} {
		got := Restart(2, c.file, c.always, c.intact)
		if got.Incarnation != c.incarnation || got.Kept != c.kept || got.Node != 2 || got.Kind != directory.Register {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestARefusedRegisterIsFollowedByOneOfANewIncarnation(t *testing.T) {
	first := Restart(2, Saved{Member: two, Always: true}.Bytes(), true, true)
	next := Again(first, directory.Answer{Node: directory.Node{ID: 2, Incarnation: 6}})
	if next.Incarnation != 7 || next.Kept {
		t.Errorf("%+v", next)
	}
}
