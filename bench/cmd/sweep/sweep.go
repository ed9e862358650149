package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// config describes a comparison of servers over all commands. It deletes the keys of the servers.
type config struct {
	Servers  []loadgen.Side // the first is compared with the others
	Clients  int            // connections; default 10
	Pipeline int            // requests in flight on each; default 32
	Duration time.Duration  // of each measurement; default 100 ms
	Rounds   int            // default 3; medians are printed
	Only     string         // comma-separated patterns of row names or commands, such as "zcount*,dump"; all if empty
	Flush    bool           // delete all keys first even if there are some
	JSON     bool           // print JSON
	Out      io.Writer
	Progress io.Writer // a line for each row when it is done; nil: none

	maxKeys int // of a row; default: as many as it names, or 10,000
}

func (cfg *config) setDefaults() {
	orDefault(&cfg.Clients, 10)
	orDefault(&cfg.Pipeline, 32)
	orDefault(&cfg.Rounds, 3)
	orDefault(&cfg.Duration, 100*time.Millisecond)
	orDefault(&cfg.maxKeys, math.MaxInt)
}

// orDefault sets a number that is not positive to its default.
func orDefault[N int | time.Duration](p *N, v N) {
	if *p <= 0 {
		*p = v
	}
}

// tooSlow is the ratio of CPU from which on a row counts as slow.
const tooSlow = 1.2

// result has the measurements of one workload.
type result struct {
	Name    string  `json:"row"`
	Ratio   float64 `json:"ratio,omitempty"` // of the first server's CPU to that of the first other one that knows the command
	Servers []cell  `json:"servers"`
}

// cell is one server's part of a row.
type cell struct {
	Server string  `json:"server"`
	CPU    float64 `json:"cpu_us,omitempty"` // an operation
	Ops    float64 `json:"ops,omitempty"`    // a second
	Ratio  float64 `json:"ratio,omitempty"`  // of the first server's CPU to this one's
	Error  string  `json:"error,omitempty"`

	cpu, ops []float64 // of the rounds
}

// sweep repeats workloads of all commands on all servers in turn, and prints CPU an operation and operations a second: medians
// over the rounds, the worst ratio first. A row that a server does not know has no figures there; a row with another error has
// it in the table.
func sweep(ctx context.Context, cfg config) error {
	cfg.setDefaults()
	for _, s := range cfg.Servers {
		_, end, err := emptied(ctx, s.Target, cfg.Flush)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		end()
	}
	rows := slices.DeleteFunc(workloads(), func(r workload) bool { return !r.selected(cfg.Only) })
	if len(rows) == 0 {
		return fmt.Errorf("no row of the sweep matches %q", cfg.Only)
	}
	done := make([]result, len(rows))
	start := time.Now()
	for i, r := range rows {
		var err error
		if done[i], err = cfg.row(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if cfg.Progress != nil {
			left := time.Since(start) / time.Duration(i+1) * time.Duration(len(rows)-i-1)
			fmt.Fprintf(cfg.Progress, "%d/%d %s: %s (%s left)\n", i+1, len(rows), r.name, done[i].verdict(), left.Round(time.Second))
		}
	}
	slices.SortStableFunc(done, func(a, b result) int { return cmp.Compare(b.Ratio, a.Ratio) })
	if cfg.JSON {
		enc := json.NewEncoder(cfg.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(done)
	}
	cfg.print(done)
	return nil
}

// command returns the words of the row's name that are the command, in lower case: "object encoding".
func (r workload) command() string {
	name := strings.Fields(strings.ToLower(r.name))
	for _, request := range strings.Split(r.run, " ; ") {
		words := strings.Fields(strings.ToLower(request))
		if words[0] != name[0] {
			continue
		}
		if !slices.Contains(containers, words[0]) {
			return name[0]
		}
		if len(name) > 1 && len(words) > 1 && words[1] == name[1] {
			return name[0] + " " + name[1]
		}
	}
	return ""
}

// containers are the commands with subcommands.
var containers = strings.Fields("acl client cluster command config function latency memory object pubsub script slowlog xgroup xinfo")

func (r workload) selected(only string) bool {
	for p := range strings.SplitSeq(only, ",") {
		if p = strings.TrimSpace(p); only == "" || strings.EqualFold(p, r.command()) || glob.MatchFold(p, r.name) {
			return true
		}
	}
	return false
}

// verdict is the row in a few words.
func (r *result) verdict() string {
	if r.Ratio == 0 {
		return cmp.Or(r.Servers[0].Error, "no ratio")
	}
	return fmt.Sprintf("%.2fx", r.Ratio)
}

// row measures one workload on all servers.
func (cfg *config) row(ctx context.Context, r workload) (result, error) {
	out := result{Name: r.name, Servers: make([]cell, len(cfg.Servers))}
	runs := make([]*serverRun, len(cfg.Servers))
	defer func() {
		for _, run := range runs {
			run.close()
		}
	}()
	for i, s := range cfg.Servers {
		var err error
		if runs[i], err = cfg.prepare(ctx, s, r); err != nil {
			var refused resp.ReplyError
			if !errors.As(err, &refused) {
				return out, fmt.Errorf("%s: %w", s.Name, err)
			}
			out.Servers[i].Error = string(refused)
		}
		out.Servers[i].Server = s.Name
	}
	for range cfg.Rounds {
		for i, run := range runs {
			c := &out.Servers[i]
			if c.Error != "" {
				continue
			}
			used, ops, elapsed, err := run.measure(ctx, cfg.Duration)
			if err != nil {
				return out, fmt.Errorf("%s: %w", c.Server, err)
			}
			c.Error = run.failed()
			c.cpu = append(c.cpu, float64(used.Nanoseconds())/1000/float64(ops))
			c.ops = append(c.ops, float64(ops)/elapsed.Seconds())
		}
	}
	for i := range out.Servers {
		c := &out.Servers[i]
		if c.Error != "" {
			continue
		}
		c.CPU, c.Ops = median(c.cpu), median(c.ops)
		if ours := &out.Servers[0]; i > 0 && ours.Error == "" && c.CPU > 0 {
			c.Ratio = ours.CPU / c.CPU
			out.Ratio = cmp.Or(out.Ratio, c.Ratio)
		}
	}
	return out, nil
}

// print prints the table.
func (cfg *config) print(rows []result) {
	fmt.Fprintf(cfg.Out, "%-40s", "row")
	for i, s := range cfg.Servers {
		fmt.Fprintf(cfg.Out, " %14s %12s", s.Name+" us", "op/s")
		if i > 0 {
			fmt.Fprintf(cfg.Out, " %7s", "ratio")
		}
	}
	fmt.Fprintln(cfg.Out)
	slow, compared := 0, 0
	for _, r := range rows {
		fmt.Fprintf(cfg.Out, "%-40s", r.Name)
		for i, c := range r.Servers {
			cpu, ops, ratio := "-", "-", "-"
			if c.Error == "" {
				cpu, ops = strconv.FormatFloat(c.CPU, 'f', 2, 64), thousands(c.Ops)
			}
			if c.Ratio > 0 {
				ratio = fmt.Sprintf("%.2fx", c.Ratio)
			}
			fmt.Fprintf(cfg.Out, " %14s %12s", cpu, ops)
			if i > 0 {
				fmt.Fprintf(cfg.Out, " %7s", ratio)
			}
		}
		fmt.Fprintln(cfg.Out)
		if r.Ratio > 0 {
			compared++
		}
		if r.Ratio > tooSlow {
			slow++
		}
	}
	for _, r := range rows {
		for _, c := range r.Servers {
			if c.Error != "" && !unknownCommand(c.Error) {
				fmt.Fprintf(cfg.Out, "%s on %s: %s\n", r.Name, c.Server, c.Error)
			}
		}
	}
	fmt.Fprintf(cfg.Out, "%d rows, %d compared, %d above %.1fx\n", len(rows), compared, slow, tooSlow)
}

// unknownCommand reports whether an error says that the server does not have the command.
func unknownCommand(text string) bool {
	text = strings.ToLower(text)
	return strings.HasPrefix(text, "err unknown command") || strings.HasPrefix(text, "err unknown subcommand")
}

// serverRun is a workload on one server.
type serverRun struct {
	ctl     *client // reads the server's CPU time
	end     func()
	workers []*worker
}

// worker is a connection that repeats a workload.
type worker struct {
	conn  net.Conn
	in    *bufio.Reader
	unit  *requests
	batch int // repetitions in flight
	rng   *rand.Rand
	keys  int
	count int    // of requests replied to
	fail  string // the first error
}

// prepare loads the data of a row, and tries its requests once. An error of the type resp.ReplyError is the server's.
func (cfg *config) prepare(ctx context.Context, s loadgen.Side, r workload) (*serverRun, error) {
	c, end, err := emptied(ctx, s.Target, true)
	if err != nil {
		return nil, err
	}
	run := &serverRun{ctl: c, end: end}
	keys := min(cmp.Or(r.keys, 10_000), cfg.maxKeys)
	err = func() error {
		if err := r.fill(ctx, c, keys); err != nil {
			return err
		}
		dump := ""
		if strings.Contains(r.run, "{dump}") {
			v, err := c.do("DUMP", "src:"+strings.Repeat("0", digits))
			if err != nil {
				return errors.Unwrap(err)
			}
			dump = v.String()
		}
		for id := range cfg.Clients {
			conn, in, err := s.Target.Dial(ctx)
			if err != nil {
				return err
			}
			commands := strings.Split(r.run, " ; ")
			batch := max(1, cfg.Pipeline/len(commands))
			run.workers = append(run.workers, &worker{conn: conn, in: in, batch: batch, keys: keys,
				unit: r.encode(commands, batch, id, dump), rng: rand.New(rand.NewPCG(1, uint64(id)))})
		}
		w := run.workers[0]
		if err := w.repeat(1); err != nil {
			return err
		}
		if w.fail != "" {
			return resp.ReplyError(w.fail)
		}
		return nil
	}()
	if err != nil {
		run.close()
		return nil, err
	}
	return run, nil
}

// fill sends the load of a row.
func (r workload) fill(ctx context.Context, c *client, keys int) error {
	if r.load == "" {
		return nil
	}
	for command := range strings.SplitSeq(r.load, " ; ") {
		n := 1
		if strings.Contains(command, "{a}") {
			n = keys
		}
		unit := r.encode([]string{command}, 1, 0, "")
		for i := 0; i < n && ctx.Err() == nil; {
			batch := min(loadBatch, n-i)
			for range batch {
				unit.write(unit.buf, &[variables]uint64{varA: uint64(i)})
				c.out = append(c.out, unit.buf...)
				i++
			}
			if err := c.flush(); err != nil {
				return err
			}
			if err := c.skip(batch); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (run *serverRun) close() {
	if run == nil {
		return
	}
	for _, w := range run.workers {
		_ = w.conn.Close()
	}
	run.end()
}

// failed returns the first error that a worker got.
func (run *serverRun) failed() string {
	for _, w := range run.workers {
		if w.fail != "" {
			return w.fail
		}
	}
	return ""
}

// measure lets the workers run for d.
func (run *serverRun) measure(ctx context.Context, d time.Duration) (used time.Duration, ops int, elapsed time.Duration, err error) {
	before, err := run.ctl.usedCPU()
	if err != nil {
		return 0, 0, 0, err
	}
	start := time.Now()
	stop := context.AfterFunc(ctx, func() {
		for _, w := range run.workers {
			_ = w.conn.Close()
		}
	})
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, len(run.workers))
	for i, w := range run.workers {
		w.count = 0
		wg.Go(func() {
			for {
				if errs[i] = w.repeat(w.batch); errs[i] != nil || time.Since(start) >= d {
					return
				}
			}
		})
	}
	wg.Wait()
	elapsed = time.Since(start)
	if err := errors.Join(ctx.Err(), errors.Join(errs...)); err != nil {
		return 0, 0, 0, err
	}
	after, err := run.ctl.usedCPU()
	for _, w := range run.workers {
		ops += w.count
	}
	return after - before, ops, elapsed, err
}

// repeat sends n repetitions, and reads the replies.
func (w *worker) repeat(n int) error {
	if _, err := w.conn.Write(w.unit.batch(n, w.rng, w.keys)); err != nil {
		return err
	}
	for range n * w.unit.commands {
		msg, err := loadgen.SkipReply(w.in)
		if err != nil {
			return err
		}
		if msg != "" && w.fail == "" {
			w.fail = msg
		}
		w.count++
	}
	return nil
}

// digits is the length of a number in a key, and loadBatch the number of requests that a load sends at once.
const (
	digits    = 12
	loadBatch = 200
)

// The variables of a repetition.
const (
	varA = iota
	varB
	varC
	varD // {d} {dd} {ddd}
	varN
	variables
)

// requests is the commands of a row, encoded once.
type requests struct {
	buf      []byte // copies of the commands
	size     int    // of one copy
	commands int
	places   []place
}

// place is the place of a variable in a copy.
type place struct{ at, width, variable int }

// marks are the placeholders of variables.
var marks = []struct {
	text            string
	variable, width int
}{{"{a}", varA, digits}, {"{b}", varB, digits}, {"{c}", varC, digits}, {"{d}", varD, 1}, {"{dd}", varD, 2},
	{"{ddd}", varD, 3}, {"{n}", varN, digits}}

// encode encodes copies of the commands for the connection id.
func (r workload) encode(commands []string, copies, id int, dump string) *requests {
	u := &requests{commands: len(commands)}
	fill := []string{"{w}", strconv.Itoa(id), "{script}", r.script, "{sha}", sha(r.script), "{dump}", dump}
	for _, n := range []int{16, 32, 100, 10_000} {
		fill = append(fill, fmt.Sprintf("{x%d}", n), strings.Repeat("x", n))
	}
	replacer := strings.NewReplacer(fill...)
	for _, command := range commands {
		words := strings.Fields(command)
		var found [][]place
		for i, word := range words {
			places, text := marked(word, replacer)
			words[i], found = text, append(found, places)
		}
		start := len(u.buf)
		u.buf = wire.AppendCommand(u.buf, words...)
		u.place(start, words, found)
	}
	u.size = len(u.buf)
	u.buf = bytes.Repeat(u.buf, copies)
	return u
}

// marked returns a word with zeros for its variables and the text of other placeholders, and the places of the variables in it.
func marked(word string, fill *strings.Replacer) (places []place, text string) {
	for word != "" {
		i := strings.IndexByte(word, '{')
		if i < 0 {
			break
		}
		end := i + strings.IndexByte(word[i:], '}') + 1
		text += word[:i]
		mark := word[i:end]
		word = word[end:]
		for _, m := range marks {
			if m.text == mark {
				places = append(places, place{len(text), m.width, m.variable})
				mark = strings.Repeat("0", m.width)
			}
		}
		text += fill.Replace(mark)
	}
	return places, text + word
}

// place notes the variables of a command that begins at start of the buffer.
func (u *requests) place(start int, words []string, found [][]place) {
	at := start + len("*\r\n") + len(strconv.Itoa(len(words)))
	for i, w := range words {
		at += len("$\r\n") + len(strconv.Itoa(len(w)))
		for _, p := range found[i] {
			p.at += at
			u.places = append(u.places, p)
		}
		at += len(w) + len("\r\n")
	}
}

// batch returns n repetitions with fresh numbers, valid until the next call.
func (u *requests) batch(n int, rng *rand.Rand, keys int) []byte {
	var v [variables]uint64
	for i := range n {
		for j := range varD {
			v[j] = rng.Uint64N(uint64(keys))
		}
		v[varD], v[varN] = rng.Uint64N(1000), rng.Uint64N(1_000_000_000_000)
		u.write(u.buf[i*u.size:], &v)
	}
	return u.buf[:n*u.size]
}

func (u *requests) write(dst []byte, v *[variables]uint64) {
	for _, p := range u.places {
		x := v[p.variable]
		for i := p.at + p.width - 1; i >= p.at; i-- {
			dst[i] = byte('0' + x%10)
			x /= 10
		}
	}
}
