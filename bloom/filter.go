package bloom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/resp"
)

// The bounds of Options, which are those of ebb's own filters.
const (
	minError       = 1e-12
	maxCapacity    = 1 << 30
	maxExpansion   = 1 << 15
	maxGenerations = 64
)

const (
	// maxNative is the number of values of a command.
	maxNative = 512
	// maxPlaces is the approximate number of places that a script gets: to read some thousand bits takes a millisecond or two.
	maxPlaces = 4000
	// maxBitmaps is the approximate number of reads of bitmaps in a script, at a microsecond or two each: every layer of every
	// generation, for each value.
	maxBitmaps = 2000
)

// Options configures a filter. The zero value is a filter that begins with space for 10,000
// values and grows, with one false positive in a hundred. The first Add makes the filter with
// these options; they do not change a filter that exists.
type Options[T any] struct {
	// Capacity is the number of values that the filter is made for; with Window, the number in a
	// window. 1 to 2^30; default 10,000.
	Capacity int64
	// Error is the highest share of values that are found although they were not added: 1e-12 to
	// below 1; default 0.01.
	Error float64
	// Fixed prevents the filter from growing: an Add beyond Capacity returns ErrFull.
	Fixed bool
	// Expansion is the ratio of the size of the next layer to that of the last, in a filter that
	// grows: 1 to 32768; default 2.
	Expansion int
	// Window is the shortest time for which values are found after they were last added, in whole
	// ms. 0: no end.
	Window time.Duration
	// Generations is the number of steps in which the values of a Window expire: 1 to 64; default
	// 8. A value is found for up to Window/Generations longer than Window.
	Generations int
	// Codec encodes values; nil: ebb.CodecOf. Equal values must have equal bytes.
	Codec conn.Codec[T]
	// Logger gets a description at debug level at the first use; nil: no log.
	Logger *slog.Logger
}

// check completes the options and returns the configuration they ask for.
func (o *Options[T]) check() (c config, err error) {
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return c, err
	}
	o.Capacity = cmp.Or(o.Capacity, 10_000)
	o.Error = cmp.Or(o.Error, 0.01)
	if o.Expansion == 0 && !o.Fixed {
		o.Expansion = 2
	}
	if o.Window > 0 && o.Generations == 0 {
		o.Generations = int(min(8, kit.Millis(o.Window)))
	}
	switch {
	case o.Capacity < 1 || o.Capacity > maxCapacity:
		err = fmt.Errorf("Capacity is %d; it must be from 1 to %d", o.Capacity, maxCapacity)
	case !(o.Error >= minError && o.Error < 1):
		err = fmt.Errorf("Error is %v; it must be at least %v and below 1", o.Error, minError)
	case o.Expansion < 0 || o.Expansion > maxExpansion:
		err = fmt.Errorf("Expansion is %d; it must be from 1 to %d", o.Expansion, maxExpansion)
	case o.Fixed && o.Expansion > 0:
		err = errors.New("Fixed and Expansion are both set; a fixed filter does not grow")
	case o.Window < 0:
		err = fmt.Errorf("Window is %v; it must be above 0, or 0 for none", o.Window)
	case o.Window == 0 && o.Generations != 0:
		err = errors.New("Generations is set without Window")
	case o.Window > 0 && (o.Generations < 1 || int64(o.Generations) > min(kit.Millis(o.Window), maxGenerations)):
		err = fmt.Errorf("Generations is %d; it must be from 1 to %d, and at most the milliseconds of Window", o.Generations, maxGenerations)
	}
	if err != nil {
		return c, fmt.Errorf("%w: %w", conn.ErrArgument, err)
	}
	return config{o.Capacity, o.Error, int64(o.Expansion), kit.Millis(o.Window), int64(o.Generations)}, nil
}

// Filter is a Bloom filter. Its methods are safe for concurrent use.
type Filter[T any] struct {
	c      *conn.Conn
	name   string
	o      Options[T]
	own    config      // what o requests
	native func() bool // whether the backend has filters of its own

	once   sync.Once              // the line in the log
	made   atomic.Pointer[config] // as the filter was made, as far as is known
	layers atomic.Int64           // how many a generation has, as far as is known
}

// New returns the filter of that name, which is its key. It sends nothing to the backend.
// Errors: ebb.ErrArgument.
func New[T any](c *conn.Conn, name string, opts ...Options[T]) (*Filter[T], error) {
	name, o, err := kit.Make(c, "bloom", name, opts)
	if err != nil {
		return nil, err
	}
	cfg, err := o.check()
	if err == nil {
		if _, m, _ := cfg.shape(0); m == 0 {
			err = fmt.Errorf("%w: more than 2^32 bits: spread the values over several filters", conn.ErrArgument)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bloom %q: %w", name, err)
	}
	f := &Filter[T]{c: c, name: name, o: o, own: cfg, native: func() bool { return c.Capabilities().Native }}
	f.take(cfg)
	return f, nil
}

// Add adds a value, and reports whether it was new. With the probability Error it returns false
// for a new value. With a Window, adding a value again renews it. Errors: ErrFull.
func (f *Filter[T]) Add(ctx context.Context, v T) (isNew bool, err error) {
	all, err := f.AddMany(ctx, v)
	return len(all) == 1 && all[0], err
}

// AddMany adds values in as few calls as possible, and reports for each whether it was new.
// With ErrFull the filter has the values for which it had space. After another error it may
// have some of them; adding them again is safe.
func (f *Filter[T]) AddMany(ctx context.Context, values ...T) (isNew []bool, err error) {
	f.log(ctx)
	data, err := f.encode(values)
	if err != nil {
		return nil, f.failed("add", err)
	}
	var replies []int64
	if f.native() {
		replies, err = f.insert(ctx, data)
	} else {
		replies, err = f.run(ctx, addScript, f.c.Script, data)
	}
	if err != nil {
		return nil, f.failed("add", err)
	}
	isNew = make([]bool, len(replies))
	for i, n := range replies {
		isNew[i] = n == 1
		if n < 0 {
			err = f.failed("add", ErrFull)
		}
	}
	return isNew, err
}

// Contains reports whether a value was added. false is certain; true is wrong with the
// probability Error.
func (f *Filter[T]) Contains(ctx context.Context, v T) (bool, error) {
	all, err := f.ContainsMany(ctx, v)
	return len(all) == 1 && all[0], err
}

// ContainsMany does the work of Contains for several values, in as few calls as possible.
func (f *Filter[T]) ContainsMany(ctx context.Context, values ...T) ([]bool, error) {
	f.log(ctx)
	data, err := f.encode(values)
	if err != nil {
		return nil, f.failed("contains", err)
	}
	var replies []int64
	if f.native() {
		replies, err = f.exists(ctx, data)
	} else {
		replies, err = f.run(ctx, containsScript, f.c.ScriptRO, data)
	}
	if err != nil {
		return nil, f.failed("contains", err)
	}
	found := make([]bool, len(replies))
	for i, n := range replies {
		found[i] = n == 1
	}
	return found, nil
}

// Count returns the number of values that were new when they were added, without those that
// have expired. It is lower than the true number by the share Error.
func (f *Filter[T]) Count(ctx context.Context) (int64, error) {
	if f.native() {
		r, err := f.c.Do(ctx, "BF.CARD", f.name)
		if err != nil {
			return 0, f.failed("count", err)
		}
		return r.AsInt()
	}
	r, err := f.c.ScriptRO(ctx, countScript, []string{f.name})
	if err != nil {
		return 0, f.failed("count", err)
	}
	return r.AsInt()
}

// Delete deletes the filter. The next Add creates a new one.
func (f *Filter[T]) Delete(ctx context.Context) error {
	if f.native() {
		if _, err := f.c.Del(ctx, f.name); err != nil {
			return f.failed("delete", err)
		}
		return nil
	}
	for {
		cfg, layers := *f.made.Load(), int(f.layers.Load())
		r, err := f.c.Script(ctx, deleteScript, f.keys(cfg, layers), cfg.String(), layers)
		if err == nil && len(r.Elems) == 2 {
			err = f.learn(r.Elems[0].Str, r.Elems[1])
		}
		if err != nil {
			return f.failed("delete", err)
		}
		if len(r.Elems) == 0 {
			f.take(f.own)
			return nil
		}
	}
}

// insert does the work of AddMany on ebb.
func (f *Filter[T]) insert(ctx context.Context, data [][]byte) ([]int64, error) {
	head := []any{"BF.INSERT", f.name, "CAPACITY", f.o.Capacity, "ERROR", f.o.Error}
	if f.o.Fixed {
		head = append(head, "NONSCALING")
	} else {
		head = append(head, "EXPANSION", f.o.Expansion)
	}
	if f.o.Window > 0 {
		head = append(head, "WINDOW", kit.Millis(f.o.Window), "GENERATIONS", f.o.Generations)
	}
	return f.each(ctx, append(head, "ITEMS"), data)
}

// exists does the work of ContainsMany on ebb.
func (f *Filter[T]) exists(ctx context.Context, data [][]byte) ([]int64, error) {
	return f.each(ctx, []any{"BF.MEXISTS", f.name}, data)
}

// each runs a command for some values at a time.
func (f *Filter[T]) each(ctx context.Context, head []any, data [][]byte) (replies []int64, err error) {
	for len(data) > 0 {
		n := min(len(data), maxNative)
		args := append(make([]any, 0, len(head)+n), head...)
		for _, d := range data[:n] {
			args = append(args, d)
		}
		data = data[n:]
		r, err := f.c.Do(ctx, args...)
		if err != nil {
			return nil, err
		}
		for _, e := range r.Elems {
			x, err := e.AsInt()
			if err != nil {
				if !strings.Contains(err.Error(), "is full") {
					return nil, err
				}
				x = -1
			}
			replies = append(replies, x)
		}
	}
	return replies, nil
}

// runner is Conn.Script or Conn.ScriptRO.
type runner func(ctx context.Context, s *conn.Script, keys []string, args ...any) (conn.Value, error)

// run runs a script for some values at a time. It runs it again if the reply shows that the
// filter has another configuration, or more layers, than f knows.
func (f *Filter[T]) run(ctx context.Context, s *conn.Script, run runner, data [][]byte) (replies []int64, err error) {
	for len(data) > 0 {
		cfg, layers := *f.made.Load(), int(f.layers.Load())
		args, width := cfg.head(layers)
		n := min(len(data), max(1, min(maxPlaces/width, maxBitmaps/(cfg.slots()*layers))))
		for _, d := range data[:n] {
			args = cfg.append(args, hashOf(d), layers)
		}
		r, err := run(ctx, s, f.keys(cfg, layers), args...)
		if err != nil {
			return nil, err
		}
		if len(r.Elems) > 1 && r.Elems[0].Kind != resp.KindInt {
			if err := f.learn(r.Elems[0].Str, r.Elems[1]); err != nil {
				return nil, err
			}
			if r.Elems = r.Elems[2:]; len(r.Elems) > 0 {
				r.Elems = r.Elems[0].Elems
			}
		}
		for _, e := range r.Elems {
			replies = append(replies, e.Int)
		}
		data = data[len(r.Elems):]
	}
	return replies, nil
}

// learn stores the configuration or the layers that the reply of a script shows.
func (f *Filter[T]) learn(what string, v conn.Value) error {
	if what == "config" {
		return f.adopt(v.Str)
	}
	if room, m, _ := f.made.Load().shape(int(v.Int) - 1); m == 0 { // it is not made, and the other layers stay
		return fmt.Errorf("%w: a layer for %d more would have more than 2^32 bits", ErrFull, room)
	}
	for n := f.layers.Load(); n < v.Int; n = f.layers.Load() {
		f.layers.CompareAndSwap(n, v.Int)
	}
	return nil
}

// adopt parses the configuration of the filter at the backend and stores it.
func (f *Filter[T]) adopt(s string) error {
	if f.made.Load().String() == s {
		return nil
	}
	cfg, err := parseConfig(s)
	if err == nil {
		f.take(cfg)
	}
	return err
}

// take stores the configuration of the filter. The number of layers is unknown then.
func (f *Filter[T]) take(cfg config) {
	f.made.Store(&cfg)
	f.layers.Store(1)
}

// head returns the arguments that the scripts begin with, and how many places a
// value has.
func (c config) head(layers int) (args []any, width int) {
	full := int64(0)
	if c.expansion == 0 {
		full = c.capacity
	}
	args = append(args, c.String(), c.window, c.generations, layers, c.expansion > 0 || c.window > 0, full)
	rooms := make([]any, layers)
	for i := range layers {
		room, _, k := c.shape(i)
		args = append(args, k)
		rooms[i] = room
		width += k
	}
	return append(args, rooms...), width
}

// append appends a value's places in each layer.
func (c config) append(args []any, h hash, layers int) []any {
	var places []uint64
	for i := range layers {
		_, m, k := c.shape(i)
		places = h.places(places[:0], m, k)
		for _, p := range places {
			args = append(args, p)
		}
	}
	return args
}

// keys returns the hash's key and those of the bitmaps.
func (f *Filter[T]) keys(cfg config, layers int) []string {
	all := append(make([]string, 0, 1+cfg.slots()*layers), f.name)
	for slot := range cfg.slots() {
		for layer := range layers {
			all = append(all, kit.Key(f.name, fmt.Sprintf("%d:%d", slot, layer+1)))
		}
	}
	return all
}

func (f *Filter[T]) encode(values []T) ([][]byte, error) {
	data := make([][]byte, len(values))
	for i, v := range values {
		var err error
		if data[i], err = f.o.Codec.Encode(v); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// String describes the filter.
func (f *Filter[T]) String() string {
	kind := "grows"
	if f.o.Fixed {
		kind = "fixed"
	}
	if f.o.Window > 0 {
		kind += fmt.Sprintf(", forgets after %v in %d generations", f.o.Window, f.o.Generations)
	}
	how := "BF.INSERT of ebb"
	if !f.native() {
		caps := f.c.Capabilities()
		how = fmt.Sprintf("bitmaps and a Lua script on %s %s", caps.Server, caps.Version)
	}
	return fmt.Sprintf("bloom filter %q (%d values at %v, %s; %s)", f.name, f.o.Capacity, f.o.Error, kind, how)
}

func (f *Filter[T]) log(ctx context.Context) {
	if f.o.Logger == nil {
		return
	}
	f.once.Do(func() { f.o.Logger.DebugContext(ctx, f.String(), "backend", f.c.String()) })
}

func (f *Filter[T]) failed(doing string, err error) error {
	return fmt.Errorf("bloom %q: %s: %w", f.name, doing, err)
}
