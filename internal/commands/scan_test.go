package commands

import (
	"bytes"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/wire"
)

// A scan copies only as many bytes of long names as a bounded reply has room for, and the reply gives their
// full lengths.
func TestNamesOfABoundedReplyAreBounded(t *testing.T) {
	for _, bound := range []wire.Bound{{}, {Most: 1 << 20}, {Most: 1 << 20, Part: 100}} {
		var w wire.Writer
		w.CollectSome(bound)
		found := newNames(&command.Ctx{Out: &w})
		long := bytes.Repeat([]byte("n"), 1<<19)
		for range 20 {
			found.add(long)
		}
		if limit := 3 << 19; bound.Most > 0 && len(found.flat) > limit || bound.Part > 0 && len(found.flat) != 2000 {
			t.Errorf("%+v: %d bytes are copied", bound, len(found.flat))
		}
		found.reply(&w)
		v := w.Value()
		if bound.Part == 0 {
			if bound.Most == 0 && (len(v.Elems) != 20 || w.Cut()) || bound.Most > 0 && !w.Cut() {
				t.Errorf("%+v: %d names, cut: %v", bound, len(v.Elems), w.Cut())
			}
			continue
		}
		if len(v.Elems) != 20 || len(v.Elems[19].Str) != 100 || v.Elems[19].Int != 1<<19 || !w.Cut() {
			t.Errorf("%+v: %d names, cut: %v", bound, len(v.Elems), w.Cut())
		}
	}
}
