package commands_test

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

func TestTheKeysOfARequestAreLookedForOnce(t *testing.T) {
	searches := 0
	spec := &command.Spec{Keys: func(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
		searches++
		if len(args) < 3 {
			return dst, command.ErrKeys
		}
		return append(dst, command.KeyRef{Pos: len(args) - 1, Flags: command.Read}), nil
	}}
	other := *spec
	var c command.Ctx
	args := services.Bytes([]string{"find", "a", "b", "c"})
	for i, step := range []struct {
		spec   *command.Spec
		args   [][]byte
		forget bool
		pos    int // 0: GETKEYS returns an error
		more   int // the number of searches for keys
	}{
		{spec, args, false, 3, 1}, {spec, args, false, 3, 0}, {&other, args, false, 3, 1}, {spec, args, false, 3, 1},
		{spec, args[:3], false, 2, 1}, {spec, args[:2], false, 0, 1}, {spec, args[:2], false, 0, 0}, {spec, args[1:], false, 2, 1},
		{spec, args[1:], true, 2, 1}, {spec, args[1:], false, 2, 0},
	} {
		if step.forget {
			c.ForgetKeys()
		}
		before := searches
		keys, err := c.KeysOf(step.spec, step.args)
		if searches-before != step.more || (err != nil) != (step.pos == 0) || err == nil && (len(keys) != 1 || keys[0].Pos != step.pos) {
			t.Errorf("step %d: %v, %v after %d searches, want %+v", i, keys, err, searches-before, step)
		}
	}
}

// BenchmarkRequestWithManyKeys runs a request whose keys matter at several points: for a user with rules, a
// cluster's slots, locks, and client-side caching.
func BenchmarkRequestWithManyKeys(b *testing.B) {
	e, err := transcript.NewEngine("--cluster-enabled", "yes")
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for _, line := range [][]string{{"ACL", "SETUSER", "ann", "on", "nopass", "~{k}*", "+@all"}, {"HELLO", "3", "AUTH", "ann", "x"},
		{"CLIENT", "TRACKING", "on"}} {
		if _, err := e.Do(1, line...); err != nil {
			b.Fatal(err)
		}
	}
	request := []string{"ZINTERCARD", "64"}
	for i := range 64 {
		request = append(request, fmt.Sprintf("{k}%d", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Do(1, request...); err != nil {
			b.Fatal(err)
		}
	}
}
