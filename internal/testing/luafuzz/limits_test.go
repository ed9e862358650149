package luafuzz

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/lua"
)

// Programs that are cut off anywhere leave a State that runs others as before.
func TestAStateOutlivesProgramsThatAreCutOff(t *testing.T) {
	const probe = `local t = {} for i = 1, 50 do t[i] = {i, 'x' .. i} end
		local co = coroutine.wrap(function(a) local b = coroutine.yield(a) return b end)
		return #t, t[50][2], co(1), co(2), pcall(error, 'e'), (('abc'):gsub('%w', string.upper))`
	stop := errors.New("stopped")
	first := uint64(0)
	if *luaSeed != 0 {
		first = *luaSeed
	}
	stopped, refused := 0, 0
	for seed := first; seed < first+600; seed++ {
		p := NewProgram(seed)
		s := lua.New()
		s.OpenLibs()
		s.SetMemoryLimit(50_000 + int(seed%37)*40_000)
		left := int(seed*7919) % 300
		s.SetInterrupt(1+int(seed%13)*5, func() error {
			if left--; left < 0 {
				return stop
			}
			return nil
		})
		err := runLimited(t, s, p, seed)
		switch {
		case errors.Is(err, stop):
			stopped++
		case err != nil && strings.Contains(err.Error(), "not enough memory"):
			refused++
		case err != nil && !errors.As(err, new(*lua.Error)):
			t.Fatalf("seed %d: %v", seed, err)
		}
		s.SetInterrupt(0, nil)
		s.SetMemoryLimit(0)
		f, err := s.Load(probe, "=probe")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rs, err := s.Main().Call(lua.ClosureValue(f))
		if err != nil {
			t.Fatalf("seed %d: then %v", seed, err)
		}
		var got []string
		for _, r := range rs {
			text, err := s.Main().ToString(r)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != "50 x50 1 2 false ABC" {
			t.Fatalf("seed %d: then %s\n%s", seed, text, p.Text())
		}
	}
	if stopped < 60 || refused < 10 {
		t.Errorf("%d were stopped, %d were refused memory: the limits are too high for this test", stopped, refused)
	}
}

func runLimited(t *testing.T, s *lua.State, p *Program, seed uint64) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d: panic: %v\n%s", seed, r, p.Text())
		}
	}()
	h, err := compiled()
	if err != nil {
		return err
	}
	rs, err := s.Main().Call(lua.ClosureValue(s.Bind(h, s.Globals())), lua.String(p.Request(Run)))
	if err == nil {
		// A program may catch what it is refused.
		if text, _ := rs[0].AsString(); strings.Contains(text, "not enough memory") {
			return fmt.Errorf("%s", "not enough memory")
		}
	}
	return err
}
