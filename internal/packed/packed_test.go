package packed

import (
	"errors"
	"testing"
)

func TestADeadlineCostsSixBytes(t *testing.T) {
	p := New(nil, KindSet)
	for _, m := range []string{"alpha", "beta", "gamma"} {
		e, _ := p.PutMember([]byte(m), 0, 0)
		p = e.Apply(make([]byte, e.Size()))
	}
	if want := 5 + len("alphabetagamma") + 3; len(p) != want {
		t.Errorf("%d bytes, want %d", len(p), want)
	}
	was := len(p) + headTimed - headPlain
	for i := range 3 {
		at, _ := p.Index(i, 0)
		e := p.SetDeadline(at, int64(100+i))
		p = e.Apply(make([]byte, e.Size()))
		if len(p) != was+6*(i+1) {
			t.Errorf("%d bytes with %d deadlines, want %d", len(p), i+1, was+6*(i+1))
		}
	}
	if p = p.Reap(101, nil); p.Count() != 2 || p.Earliest() != 101 {
		t.Errorf("%d members, earliest %d", p.Count(), p.Earliest())
	}
}

func TestEqualScoresOrderByMember(t *testing.T) {
	p := New(nil, KindZSet)
	for _, m := range []string{"10", "9", "b", "", "a"} {
		e, _ := p.PutScore([]byte(m), 1.5, 0, 0)
		p = e.Apply(make([]byte, e.Size()))
	}
	got := ""
	for it := p.Iter(0); it.Next(); {
		got += it.Key().String() + " "
	}
	if got != " 10 9 a b " {
		t.Errorf("order %q", got)
	}
}

func TestValidateRefusesWhatCannotHaveBeenWritten(t *testing.T) {
	for name, image := range map[string]string{
		"nothing":                   "",
		"no kind":                   "\x07\x00\x00\x00\x00",
		"unknown flag":              "\x12\x00\x00\x00\x00",
		"no run":                    "\x02\x00\x00\x00",
		"count":                     "\x02\x02\x00\x00\x01a\x01",
		"last separator":            "\x02\x01\x00\x00\x01a\x02",
		"string beyond the end":     "\x02\x01\x00\x00\x09a\x01",
		"length beyond the end":     "\x02\x01\x00\x00\x43\xff\xff\xff\xffaaaa\x43",
		"lengths that differ":       "\x02\x01\x00\x00\x41\x02ab\x01\x41",
		"short string, long form":   "\x02\x01\x00\x00\x41\x02ab\x02\x41",
		"integer kept as a string":  "\x02\x01\x00\x0017\x01",
		"integer in too many bytes": "\x02\x01\x00\x00\x44\x05\x44",
		"free code":                 "\x02\x01\x00\x00\x4c\x4c",
		"score as a member":         "\x02\x01\x00\x00\x4a\x00\x00\xc0\x3f\x4a",
		"member twice":              "\x02\x02\x00\x00\x01a\x00a\x01",
		"field without value":       "\x03\x01\x00\x00\x01a\x01",
		"string as a score":         "\x04\x01\x00\x00\x01a\x00b\x01",
		"scores out of order":       "\x04\x02\x00\x00\x01a\x51\x51b\x4f\x4e",
		"deadlines without one":     "\x0a\x01\x00\x00\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01a\x01",
		"deadline zero":             "\x0a\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x81\x00\x00\x00\x00\x00\x00a\x81",
		"another earliest":          "\x0a\x01\x00\x00\x05\x00\x00\x00\x00\x00\x01\x00\x00\x00\x81\x06\x00\x00\x00\x00\x00a\x81",
		"integers of three bytes":   "\x35\x00\x00\x00",
		"integers out of order":     "\x25\x02\x00\x00\x02\x00\x01\x00",
	} {
		if err := Validate([]byte(image)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Validate([]byte("\x0a\x01\x00\x00\x06\x00\x00\x00\x00\x00\x01\x00\x00\x00\x81\x06\x00\x00\x00\x00\x00a\x81")); err != nil {
		t.Errorf("a sound image: %v", err)
	}
}

func TestWritesAllocateNothing(t *testing.T) {
	p, field, room := hashOf(8), []byte("field:3"), make([]byte, 512)
	long, short := []byte("a value of some length"), []byte("17")
	if n := testing.AllocsPerRun(100, func() {
		e, _ := p.PutField(field, long, 5000, 1)
		p = e.Apply(room)
		e, _ = p.PutField(field, short, Keep, 1)
		p = e.Apply(room)
		at, _ := p.Find(field, 1)
		p = p.Delete(at)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
