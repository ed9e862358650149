package script

import (
	"github.com/ebbdb/ebb/internal/lua"
)

// libraryStack is the number of values that the stack of one call may hold in Redis's Lua.
// The libraries there keep the levels of what they walk on that stack, so depth
// ends where it would overflow; here it is counted alone.
const libraryStack = 8000

// stepsPerSpend is the number of steps that the loops of the libraries count before they
// tell the State: seldom enough to cost nothing, often enough for a script to be
// ended within microseconds.
const stepsPerSpend = 1000

// meter gathers steps, one for an entry of a table or about as much work on bytes.
type meter struct {
	state *lua.State
	steps int
}

// bytesPerStep is the number of bytes that are copied or searched in a step's time.
const bytesPerStep = 64

// add counts n steps.
func (m *meter) add(n int) error {
	m.steps += n
	if m.steps < stepsPerSpend {
		return nil
	}
	n, m.steps = m.steps, 0
	return m.state.Spend(n)
}

// errMemory is the error of a program that builds too long a string.
var errMemory = &lua.Error{Value: lua.String("not enough memory")}

// output is a string that is being written. It charges what it takes.
type output struct {
	meter
	b []byte
}

// keepOutput is the largest buffer that an output keeps for the next string.
const keepOutput = 64 << 10

// reserve makes room for n more bytes.
func (o *output) reserve(n int) error {
	if cap(o.b)-len(o.b) >= n {
		return nil
	}
	return o.grow(n)
}

func (o *output) grow(n int) error {
	if n > lua.MaxString-len(o.b) {
		return errMemory
	}
	size := max(2*cap(o.b), len(o.b)+n, 512)
	if err := o.state.Charge(size); err != nil {
		return err
	}
	b := make([]byte, len(o.b), size)
	copy(b, o.b)
	o.b = b
	return nil
}

// take returns what was written as a string of its own, and is empty again.
func (o *output) take() (lua.Value, error) {
	n := len(o.b)
	if err := o.state.Charge(n); err != nil {
		return lua.Nil, err
	}
	if err := o.state.Spend(o.steps + n/bytesPerStep); err != nil {
		return lua.Nil, err
	}
	o.steps = 0
	return lua.String(string(o.b)), nil
}

// begin empties the output for a call; end lets go of a large buffer.
func (o *output) begin(s *lua.State) { o.state, o.steps, o.b = s, 0, o.b[:0] }

func (o *output) end() {
	if cap(o.b) > keepOutput {
		o.b = nil
	}
}

// pile collects a decoder's values of the tables that it has not read
// to their end: those of an inner one lie above those of the outer one.
type pile struct {
	meter
	values []lua.Value
	high   int // the most that the call has had
	chunk  []byte
	rest   int // bytes of the input that may still become strings
}

const (
	keepPile = 4 << 10 // values that a pile keeps room for

	// chunkSize is the number of bytes of short strings that share memory. A short string
	// that a script keeps must not keep the whole input, unseen by the census.
	chunkSize  = 512
	shortBytes = chunkSize / 4
)

// begin prepares for the decoding of an input of n bytes. It charges the memory of all
// strings at once: together they are no longer than the input.
func (p *pile) begin(s *lua.State, n int) error {
	p.state, p.steps, p.high, p.rest = s, 0, 0, n
	return s.Charge(n)
}

// end lets go of all values.
func (p *pile) end() {
	p.chunk = nil
	if cap(p.values) > keepPile {
		p.values = nil
		return
	}
	clear(p.values[:max(p.high, len(p.values))])
	p.values = p.values[:0]
}

// push puts a value on top.
func (p *pile) push(v lua.Value) error {
	if len(p.values) == cap(p.values) {
		size := max(2*cap(p.values), 64)
		if err := p.state.Charge(16 * size); err != nil {
			return err
		}
		values := make([]lua.Value, len(p.values), size)
		copy(values, p.values)
		p.values = values
	}
	p.values = append(p.values, v)
	return nil
}

// array takes the values from first on off, as an array. None is nil.
func (p *pile) array(first int) (lua.Value, error) {
	t, err := p.state.NewArray(p.values[first:])
	return p.made(t, err, first)
}

// record takes the values from first on off, keys and values in turns, as a table
// with these entries made in this order. The keys are strings, no value is nil.
func (p *pile) record(first int) (lua.Value, error) {
	t, err := p.state.NewRecord(p.values[first:])
	return p.made(t, err, first)
}

func (p *pile) made(t *lua.Table, err error, first int) (lua.Value, error) {
	p.high = max(p.high, len(p.values))
	p.values = p.values[:first]
	if err != nil {
		return lua.Nil, err
	}
	return lua.TableValue(t), nil
}

// text returns a string with the bytes of s.
func (p *pile) text(s string) lua.Value {
	p.rest -= len(s)
	if len(s) > shortBytes {
		p.steps += len(s) / bytesPerStep
		return lua.Bytes([]byte(s))
	}
	if cap(p.chunk)-len(p.chunk) < len(s) {
		p.chunk = make([]byte, 0, max(min(chunkSize, p.rest+len(s)), len(s)))
	}
	n := len(p.chunk)
	p.chunk = append(p.chunk, s...)
	return lua.Bytes(p.chunk[n:])
}
