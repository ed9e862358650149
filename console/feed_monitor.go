package console

import (
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

const (
	// monitorSpan is the time for which a stream shows commands, in ms. While a stream does, each command costs the server
	// about a microsecond.
	monitorSpan = 60_000
	// monitorLines is the limit of commands that a stream shows in a second.
	monitorLines = 200
)

// watch collects the commands that the server runs, for one stream.
type watch struct {
	c     *Console
	began int64  // ms
	why   string // the reason for which there is nothing to see
	end   func() // ends the observation; nil: it has ended

	mu      sync.Mutex // guards what follows
	lines   []monitorLine
	skipped int64
}

// monitorLine is a command that has run.
type monitorLine struct {
	At   float64 `json:"at"` // ms since 1970
	DB   int     `json:"db"`
	Addr string  `json:"addr"`
	Argv []blob  `json:"argv"`
}

// monitorEvent has the commands of a second.
type monitorEvent struct {
	Lines   []monitorLine `json:"lines"`
	Skipped int64         `json:"skipped"`
	Left    int64         `json:"left"` // seconds
	Over    bool          `json:"over"`
	Why     string        `json:"why,omitempty"`
}

// watchCommands begins to collect commands for a viewer who may run MONITOR.
func (c *Console) watchCommands(v *viewer) *watch {
	w := &watch{c: c, began: c.now()}
	if ok, need := v.id.May([][]byte{[]byte("MONITOR")}); !ok {
		w.why = "NOPERM the rule " + need + " would let the user see the commands of others"
		return w
	}
	w.end = c.svc.Monitor(w.note)
	return w
}

// note records a command for the viewer. The server holds locks during the call.
func (w *watch) note(x session.MonitorLine) {
	if x.Lib == library {
		if spec := w.c.specOf(x.Args); spec == nil || isRead(spec, x.Args) || spec.Client&command.Stateful != 0 {
			return // what the screens read, and how the console's sessions begin
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == monitorLines {
		w.skipped++
		return
	}
	spec := w.c.specOf(x.Args)
	line := monitorLine{At: float64(x.At) / 1000, DB: x.DB, Addr: x.Addr}
	for i, a := range admin.ClipArgs(x.Args) {
		b := bytesOf(a)
		if w.c.opt.HideValues && (spec == nil && i > 0 || spec != nil && !named(spec, x.Args, i)) {
			b = blob{n: len(x.Args[i]), hidden: true}
		}
		line.Argv = append(line.Argv, b)
	}
	w.lines = append(w.lines, line)
}

// take returns the commands since the last call.
func (w *watch) take() *monitorEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &monitorEvent{Lines: slices.Clone(w.lines), Skipped: w.skipped, Left: max(0, (monitorSpan-(w.c.now()-w.began))/1000)}
	if x.Lines == nil {
		x.Lines = []monitorLine{}
	}
	w.lines, w.skipped = w.lines[:0], 0
	return x
}

// stop ends the observation.
func (w *watch) stop() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}
