package console

import (
	"maps"
	"slices"
	"strings"
)

// This file answers the cards of the screen Performance about commands, slow calls, latency events and scripts.

// commandStat is the time that a command has taken since the start or CONFIG RESETSTAT. Times are in us.
type commandStat struct {
	Name     string `json:"name"`
	Calls    int64  `json:"calls"`
	Usec     int64  `json:"usec"`
	Rejected int64  `json:"rejected"`
	Failed   int64  `json:"failed"`
	P50      *int64 `json:"p50"` // null: no call was timed
	P99      *int64 `json:"p99"`
	P999     *int64 `json:"p999"`
}

// errorStat is the number of replies with an error code.
type errorStat struct {
	Code blob  `json:"code"`
	N    int64 `json:"n"`
}

// getPerformance answers GET api/performance.
func getPerformance(k *call, _ *request) (any, error) {
	out := struct {
		Now      int64         `json:"now"`
		Timing   bool          `json:"timing"` // latency-tracking
		Commands []commandStat `json:"commands"`
		Errors   []errorStat   `json:"errors"`
		Denied   []string      `json:"denied,omitempty"`
	}{Now: k.c.now(), Commands: []commandStat{}, Errors: []errorStat{}}
	if !k.allowed([][]byte{[]byte("INFO"), []byte("commandstats")}) {
		out.Denied = k.denied
		return out, nil
	}
	s := k.c.svc.Admin()
	out.Timing = s.Host.Timing()
	counters := s.Counters()
	for id, name := range s.Commands {
		t := s.Tally(id, counters)
		if t.Calls+t.Rejected+t.Failed == 0 {
			continue
		}
		row := commandStat{Name: strings.ToUpper(strings.ReplaceAll(name, "|", " ")), Calls: t.Calls, Usec: t.Micros, Rejected: t.Rejected, Failed: t.Failed}
		if n := t.Timed(); n > 0 && out.Timing { // counts from before the timing was switched off would look current
			p50, p99, p999 := t.Percentile(50, n), t.Percentile(99, n), t.Percentile(99.9, n)
			row.P50, row.P99, row.P999 = &p50, &p99, &p999
		}
		out.Commands = append(out.Commands, row)
	}
	codes := s.Totals.ErrorCodes()
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		out.Errors = append(out.Errors, errorStat{bytesOf(code), codes[code]})
	}
	return out, nil
}

// latencyRow is an event of the latency monitor. A sample is its time, in ms since 1970, and its ms.
type latencyRow struct {
	Event   string     `json:"event"`
	At      int64      `json:"at"` // ms since 1970
	MS      int64      `json:"ms"`
	Max     int64      `json:"max"`
	Samples [][2]int64 `json:"samples"` // oldest first
}

// getLatency answers GET api/latency: LATENCY LATEST, with LATENCY HISTORY of each event.
func getLatency(k *call, q *request) (any, error) {
	out := struct {
		Now       int64        `json:"now"`
		Threshold *int64       `json:"threshold"` // ms, 0: the monitor is off; null: the user may not see it
		Events    []latencyRow `json:"events"`
		Denied    []string     `json:"denied,omitempty"`
	}{Now: k.c.now(), Events: []latencyRow{}}
	if k.v.id.MayRun([]byte("CONFIG"), []byte("GET")) {
		threshold := k.c.svc.Config.Int("latency-monitor-threshold")
		out.Threshold = &threshold
	}
	latest, err := k.do(q.ctx, "LATENCY", "LATEST")
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	for _, e := range latest.Elems {
		x := e.Elems
		row := latencyRow{Event: x[0].Str, At: x[1].Int * 1000, MS: x[2].Int, Max: x[3].Int, Samples: [][2]int64{}}
		if v, err := k.do(q.ctx, "LATENCY", "HISTORY", x[0].Str); err == nil {
			for _, s := range v.Elems {
				row.Samples = append(row.Samples, [2]int64{s.Elems[0].Int * 1000, s.Elems[1].Int})
			}
		}
		out.Events = append(out.Events, row)
	}
	out.Denied = k.denied
	return out, nil
}

// scriptRow is a cached script of EVAL.
type scriptRow struct {
	SHA    string `json:"sha"`
	Bytes  int    `json:"bytes"`
	Loaded bool   `json:"loaded"` // by SCRIPT LOAD: it stays until SCRIPT FLUSH
	Head   blob   `json:"head"`
}

// libraryRow is a library of functions.
type libraryRow struct {
	Name      blob          `json:"name"`
	Functions []functionRow `json:"functions"`
}

type functionRow struct {
	Name        blob     `json:"name"`
	Flags       []string `json:"flags"`
	Description *blob    `json:"description"`
}

// scriptRows is the number of cached scripts that a page gets, and headBytes the number of bytes of each.
const (
	scriptRows = 200
	headBytes  = 200
)

// getScripts answers GET api/scripts: the cached scripts, the libraries of functions, and whether a script is running.
func getScripts(k *call, q *request) (any, error) {
	type running struct {
		MS      int64 `json:"ms"`
		Overdue bool  `json:"overdue"` // other clients get BUSY
	}
	out := struct {
		Now           int64        `json:"now"`
		Cached        int          `json:"cached"`
		Bytes         int          `json:"bytes"`
		Evicted       int          `json:"evicted"`
		Functions     int          `json:"functions"`
		FunctionBytes int          `json:"functionBytes"`
		Running       *running     `json:"running"`
		Scripts       []scriptRow  `json:"scripts"`
		Libraries     []libraryRow `json:"libraries"`
		Denied        []string     `json:"denied,omitempty"`
	}{Now: k.c.now(), Scripts: []scriptRow{}, Libraries: []libraryRow{}}
	s := k.c.svc.Admin()
	if k.allowed([][]byte{[]byte("INFO"), []byte("memory")}) {
		n := s.Scripts.Stats()
		out.Cached, out.Bytes, out.Evicted, out.Functions, out.FunctionBytes = n.Scripts, n.ScriptBytes, n.Evicted, n.Functions, n.FunctionBytes
		if began, overdue, ok := s.Host.RunningScript(); ok {
			out.Running = &running{max(0, k.c.clock.Micros()-began) / 1000, overdue}
		}
	}
	if k.allowed([][]byte{[]byte("SCRIPT"), []byte("SHOW"), []byte("x")}) {
		for _, x := range s.Scripts.Cached(scriptRows) {
			head := cutTo(x.Body, headBytes)
			if k.c.opt.HideValues {
				head = blob{n: len(x.Body), hidden: true}
			}
			out.Scripts = append(out.Scripts, scriptRow{x.SHA, len(x.Body), x.Loaded, head})
		}
	}
	list, err := k.do(q.ctx, "FUNCTION", "LIST")
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	for _, l := range list.Elems {
		row := libraryRow{Name: nameOf(member(l, "library_name")), Functions: []functionRow{}}
		for _, f := range member(l, "functions").Elems {
			one := functionRow{Name: nameOf(member(f, "name")), Flags: []string{}}
			for _, flag := range member(f, "flags").Elems {
				one.Flags = append(one.Flags, flag.Str)
			}
			if d := member(f, "description"); !d.IsNull() {
				text := k.c.valueOf(d)
				one.Description = &text
			}
			row.Functions = append(row.Functions, one)
		}
		out.Libraries = append(out.Libraries, row)
	}
	out.Denied = k.denied
	return out, nil
}

// slowRow is a slow call. Its arguments are hidden if values are.
type slowRow struct {
	ID   int64  `json:"id"`
	At   int64  `json:"at"` // ms since 1970
	Us   int64  `json:"us"`
	Argv []blob `json:"argv"`
	Addr string `json:"addr"`
	Name blob   `json:"name"`
}

// getSlowlog answers GET api/slowlog.
func getSlowlog(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "SLOWLOG", "GET", 128)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	out := struct {
		Rows      []slowRow `json:"rows"`
		Threshold string    `json:"threshold,omitempty"` // us
		Max       string    `json:"max,omitempty"`
		Denied    []string  `json:"denied,omitempty"`
	}{Rows: []slowRow{}}
	for _, e := range v.Elems {
		x := e.Elems
		row := slowRow{ID: x[0].Int, At: x[1].Int * 1000, Us: x[2].Int, Addr: x[4].Str, Name: nameOf(x[5])}
		for i, a := range x[3].Elems {
			if i == 0 {
				row.Argv = append(row.Argv, nameOf(a)) // the command's name
				continue
			}
			row.Argv = append(row.Argv, k.c.valueOf(a))
		}
		out.Rows = append(out.Rows, row)
	}
	out.Denied = slices.Clone(k.denied)
	if v, err := k.do(q.ctx, "CONFIG", "GET", "slowlog-*"); err == nil {
		out.Threshold, out.Max = member(v, "slowlog-log-slower-than").Str, member(v, "slowlog-max-len").Str
	}
	return out, nil
}
