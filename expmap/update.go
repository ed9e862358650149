package expmap

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// CompareAndSwap replaces the value of an entry in one step if it equals old, and reports whether it did. If
// there is no such entry, it does nothing. The entry's deadline stays, and in a map with an IdleTTL the swap
// counts as use. The backend compares bytes, as Options.Codec encodes old: equal values must have equal
// encodings. A codec with random parts, or one that has changed since the entry was written, never swaps.
// encoding/json is deterministic.
func (m *Map[K, V]) CompareAndSwap(ctx context.Context, key K, old, value V) (bool, error) {
	did, err := m.swap(ctx, m.layout().swap, key, old, value)
	return did, m.failed("compare and swap", err)
}

// CompareAndDelete removes an entry whose value is old, in one step, and reports whether it did.
// It compares as CompareAndSwap does, and records no expiration.
func (m *Map[K, V]) CompareAndDelete(ctx context.Context, key K, old V) (bool, error) {
	did, err := m.swap(ctx, m.layout().swapDel, key, old)
	return did, m.failed("compare and delete", err)
}

func (m *Map[K, V]) swap(ctx context.Context, s *conn.Script, key K, values ...V) (bool, error) {
	f, err := m.o.Keys.Encode(key)
	if err != nil {
		return false, err
	}
	args := append(make([]any, 0, 3), f)
	for _, value := range values {
		v, err := m.o.Codec.Encode(value)
		if err != nil {
			return false, err
		}
		args = append(args, v)
	}
	if err := m.begin(ctx, true); err != nil {
		return false, err
	}
	defer m.changed()
	return truth(m.run(ctx, s, "", args...))
}

// Increment adds delta, which may be negative, to an entry that holds an integer, and returns the sum. The
// entry's deadline stays, and in a map with an IdleTTL the call counts as use. An entry that does not exist
// starts at 0 and lives for ttl, or without a deadline if ttl is 0. The backend reads and writes decimal
// text, as JSON and the codec of strings do, whatever V is. Errors: ErrNotNumber, even for a number with a
// fraction; ErrOverflow beyond 64 bits; ErrFull.
func (m *Map[K, V]) Increment(ctx context.Context, key K, delta int64, ttl time.Duration) (int64, error) {
	text, err := m.add(ctx, "HINCRBY", key, strconv.FormatInt(delta, 10), ttl)
	if err != nil {
		return 0, m.failed("increment", err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil { // the delta of a new entry, or the result of HINCRBY
		err = fmt.Errorf("%w: the sum %q is not an integer", conn.ErrValue, text)
	}
	return n, m.failed("increment", err)
}

// IncrementFloat does the work of Increment for numbers with a fraction. Errors: ErrNotNumber;
// ErrOverflow if the sum is infinite; ErrFull; ebb.ErrArgument if delta is not finite.
func (m *Map[K, V]) IncrementFloat(ctx context.Context, key K, delta float64, ttl time.Duration) (float64, error) {
	if math.IsNaN(delta) || math.IsInf(delta, 0) {
		return 0, m.failed("increment", fmt.Errorf("%w: the increment is %v; it must be finite", conn.ErrArgument, delta))
	}
	text, err := m.add(ctx, "HINCRBYFLOAT", key, strconv.FormatFloat(delta, 'f', -1, 64), ttl)
	if err != nil {
		return 0, m.failed("increment", err)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		err = fmt.Errorf("%w: the sum %q is not a number", conn.ErrValue, text)
	}
	return n, m.failed("increment", err)
}

func (m *Map[K, V]) add(ctx context.Context, by string, key K, delta string, ttl time.Duration) (string, error) {
	ms, err := m.bounds.Millis(ttl)
	if err != nil {
		return "", err
	}
	f, err := m.o.Keys.Encode(key)
	if err != nil {
		return "", err
	}
	if err := m.begin(ctx, true); err != nil {
		return "", err
	}
	defer m.changed()
	v, err := m.runEvicting(ctx, m.layout().add, "", f, delta, ms, by)
	if err != nil {
		return "", err
	}
	if len(v.Elems) == 1 {
		return v.Elems[0].String(), nil
	}
	switch v.Int {
	case -2:
		return "", fmt.Errorf("%w: Increment adds to integers, and IncrementFloat to all numbers", ErrNotNumber)
	case -3:
		return "", fmt.Errorf("%w: Increment has 64 bits, and IncrementFloat the range of a float64", ErrOverflow)
	}
	_, err = m.outcome(v, nil)
	return "", err
}
