// Package calls implements the direct calls of an embedded engine on a service: calls of the process itself that need no session.
//
//	Get ─▶ detour? ─▶ lock the key's shard ─▶ detour? ─▶ read, count ─▶ unlock
//	          │ yes              │ busy           │ yes        │ more to do than that
//	          └──────────────────┴── Elsewhere ───┴────────────┘
//
// docs/design/direct.md says for each step of dispatch what a direct call does instead. What it asks of the service is in
// session/direct.go. Start reading at Direct.Get and at Direct.Set.
package calls

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/session"
)

// Direct implements direct.Calls for one database of a service.
type Direct struct {
	svc   *session.Service
	dbi   int
	off   atomic.Bool  // Close was called
	after atomic.Int64 // calls with follow-up work that has not ended
	specs [direct.Kinds]*command.Spec
	txs   sync.Pool // of *call
}

const _ = uint(engine.DirectCalls - direct.Kinds) // a shard has room for the counts of all kinds

// New returns the direct calls of a database; nil if the configuration has renamed one of their commands. The caller
// closes them.
func New(s *session.Service, dbi int) *Direct {
	d := &Direct{svc: s, dbi: dbi}
	for kind, name := range direct.Commands {
		if d.specs[kind] = s.Table().Lookup([]byte(name)); d.specs[kind] == nil || d.specs[kind].Name != name {
			return nil
		}
	}
	d.txs.New = func() any {
		t := &call{tx: s.DB.NewTx()}
		t.tx.SetCaller(d)
		return t
	}
	return d
}

// Close makes all further calls reply Elsewhere, and waits for those that have begun, and for their follow-up work.
func (d *Direct) Close() {
	d.off.Store(true)
	d.svc.DB.DirectBarrier(d.svc.ScriptRuns)
	for d.after.Load() > 0 {
		time.Sleep(100 * time.Microsecond)
	}
}

// Following implements engine.Follower.
func (d *Direct) Following(n int64) { d.after.Add(n) }

// detour reports whether calls have to go the way of every command.
func (d *Direct) detour() bool { return d.svc.DirectDetour() || d.off.Load() }

// measured records a call that stands for n calls of its kind, and that began at an instant in us.
func (d *Direct) measured(kind int, n, began int64) { d.svc.MeasuredDirect(d.specs[kind], n, began) }

// textBytes returns the bytes of a string, which the callee must not change.
func textBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// shortValue is the longest value that Get copies to its stack, so that it allocates when the shard is unlocked: a goroutine
// that allocates may have to work for the collector.
const shortValue = 256

// Get implements direct.Calls.
func (d *Direct) Get(key string) (string, direct.State) {
	return d.text(&lookup{kind: direct.KindGet, key: textBytes(key)})
}

// HGet implements direct.Calls.
func (d *Direct) HGet(key, field string) (string, direct.State) {
	f := textBytes(field)
	return d.text(&lookup{kind: direct.KindHGet, key: textBytes(key), field: f, hash: d.svc.DB.HashItem(f)})
}

// lookup names the value that a read returns: a string, or a field of a hash.
type lookup struct {
	kind       int
	key, field []byte
	hash       uint64 // of the field
}

// text returns the value that a read finds.
func (d *Direct) text(l *lookup) (string, direct.State) {
	var short [shortValue]byte
	n, state := d.read(short[:], l)
	switch {
	case state != direct.Done:
		return "", state
	case n <= len(short):
		return string(short[:n]), direct.Done
	}
	val, state := d.appendTo(make([]byte, 0, n), l)
	return direct.Text(val), state
}

// maxGrows is the number of times that AppendGet makes room for a value that has become longer meanwhile.
const maxGrows = 4

// AppendGet implements direct.Calls.
func (d *Direct) AppendGet(dst []byte, key string) ([]byte, direct.State) {
	return d.appendTo(dst, &lookup{kind: direct.KindGet, key: textBytes(key)})
}

// appendTo appends the value that a read finds to dst.
func (d *Direct) appendTo(dst []byte, l *lookup) ([]byte, direct.State) {
	for range maxGrows {
		room := dst[len(dst):cap(dst)]
		n, state := d.read(room, l)
		if state != direct.Done {
			return dst, state
		}
		if n <= len(room) {
			return dst[:len(dst)+n], direct.Done
		}
		dst = slices.Grow(dst, n)
	}
	return dst, direct.Elsewhere
}

// read copies the value that it finds to dst and returns the value's length. If dst is too short, it copies nothing, and the call does
// not count.
func (d *Direct) read(dst []byte, l *lookup) (n int, state direct.State) {
	if d.detour() {
		return 0, direct.Elsewhere
	}
	h, ok := d.svc.DB.Hold(l.key)
	if !ok {
		return 0, direct.Elsewhere
	}
	defer func() {
		if !ok {
			d.svc.PanickedDirect(d.specs[l.kind], nil)
		}
		h.Release()
	}()
	ok = false
	n, state = d.readHeld(&h, dst, l)
	ok = true
	return n, state
}

// readHeld is read with the shard locked.
func (d *Direct) readHeld(h *engine.Held, dst []byte, l *lookup) (n int, state direct.State) {
	if d.detour() {
		return 0, direct.Elsewhere
	}
	began, due := int64(0), h.Due(l.kind)
	if due {
		began = d.svc.DB.Clock().Micros()
	}
	var val []byte
	var found engine.Found
	if l.kind == direct.KindGet {
		val, found = h.String(d.dbi, l.key)
	} else {
		val, found = h.Field(d.dbi, l.key, l.field, l.hash)
	}
	switch {
	case found == engine.Unclear:
		return 0, direct.Elsewhere
	case found == engine.Missing:
		h.Miss()
		state = direct.Absent
	case found == engine.NoField:
		h.Hit() // of the key
		state = direct.Absent
	case len(val) > len(dst):
		return len(val), direct.Done
	default:
		h.Hit()
		n, state = copy(dst, val), direct.Done
	}
	if weight := h.Count(l.kind); due {
		d.measured(l.kind, weight, began)
	}
	return n, state
}

// call is a transaction for one direct call at a time, from the pool.
type call struct {
	tx    *engine.Tx
	val   []byte    // scratch for a value that the call returns
	pair  [2][]byte // a field and its value
	key   []byte    // scratch for a key that has two parts
	began int64     // us, if the call is due to be measured
	add   engine.QueueAdd
}

// change runs fn in a transaction on a key. The call is Done if fn reports true, and Absent if it reports false. If fn returns an
// error, it has changed nothing, and the call goes elsewhere.
func (d *Direct) change(kind int, key []byte, fn func(tx *engine.Tx) (bool, error)) direct.State {
	t := d.txs.Get().(*call)
	state := d.changeIn(t, kind, key, fn)
	d.txs.Put(t)
	return state
}

// changeIn is change in a transaction from the pool, which the caller gives back.
func (d *Direct) changeIn(t *call, kind int, key []byte, fn func(tx *engine.Tx) (bool, error)) direct.State {
	if !d.begin(t, kind, key) {
		return direct.Elsewhere
	}
	ended := false
	defer func() {
		if !ended { // it panics, and its transaction is not used again
			d.svc.PanickedDirect(d.specs[kind], t.tx)
		}
	}()
	done, err := fn(t.tx)
	if err == nil {
		if weight := t.tx.Count(kind); weight > 0 {
			d.measured(kind, weight, t.began)
		}
	}
	t.tx.UnlockDirect()
	ended = true
	switch {
	case err != nil:
		return direct.Elsewhere
	case done:
		return direct.Done
	}
	return direct.Absent
}

// begin begins a transaction on a key, unless the call has to go elsewhere.
func (d *Direct) begin(t *call, kind int, key []byte) bool {
	if d.detour() || d.svc.DB.OverLimit() || !t.tx.TryDirect(d.dbi, key) {
		return false
	}
	if d.detour() {
		t.tx.UnlockDirect()
		return false
	}
	if t.tx.Due(kind) {
		t.began = d.svc.DB.Clock().Micros()
	}
	return true
}

// longValue is the length of a value from which on SET may take a millisecond: its time then counts for the slow log.
const longValue = 64 << 10

// Set implements direct.Calls.
func (d *Direct) Set(key, val string, o direct.SetOptions) direct.State {
	if len(val) > longValue {
		return direct.Elsewhere
	}
	k := textBytes(key)
	return d.change(direct.KindSet, k, func(tx *engine.Tx) (bool, error) {
		e := engine.SetOptions{Deadline: o.At, KeepTTL: o.KeepTTL, IfAbsent: o.NX, IfExists: o.XX}
		if o.TTL > 0 {
			e.Deadline = tx.DeadlineAfter(o.TTL)
		}
		done, _, err := tx.Set(k, textBytes(val), e, nil)
		return done, err
	})
}

// HSet implements direct.Calls.
func (d *Direct) HSet(key, field, val string, o direct.FieldOptions) direct.State {
	if len(field)+len(val) > longValue || o.MaxLen > math.MaxInt32 {
		return direct.Elsewhere
	}
	k := textBytes(key)
	t := d.txs.Get().(*call)
	t.pair = [2][]byte{textBytes(field), textBytes(val)}
	t.tx.Hashed(t.pair[0], d.svc.DB.HashItem(t.pair[0]))
	state := d.changeIn(t, direct.KindHSet, k, func(tx *engine.Tx) (bool, error) {
		e := engine.ItemOptions{OnlyNew: o.NX, Max: int(o.MaxLen)}
		if o.TTL > 0 {
			e.Deadline = tx.DeadlineAfter(o.TTL)
		}
		return tx.HSetEx(k, t.pair[:], e)
	})
	t.pair = [2][]byte{}
	t.tx.Hashed(nil, 0)
	d.txs.Put(t)
	return state
}

// longKey is the longest key, in bytes, for which a transaction keeps its memory.
const longKey = 4 << 10

// Take implements direct.Calls.
func (d *Direct) Take(name, key string, o *direct.TakeOptions, cost int64, peek bool) (taken direct.Taken, state direct.State) {
	if len(name)+len(key) >= longKey {
		return taken, direct.Elsewhere
	}
	t := d.txs.Get().(*call)
	k := append(t.key[:0], name...)
	if key != "" {
		k = append(append(k, ':'), key...)
	}
	t.key = k
	state = d.changeIn(t, direct.KindTake, k, func(tx *engine.Tx) (bool, error) {
		got, err := tx.Take(k, engine.TakeOptions{Algo: limiter.Algo(o.Algo), Limit: o.Limit, Period: o.Period, Burst: o.Burst,
			Cost: cost, Peek: peek, Behind: tx.Behind(k, engine.Limiter, false)})
		taken = direct.Taken{Allowed: got.Allowed, Limit: got.Limit, Remaining: got.Remaining, Retry: got.Retry, Reset: got.Reset}
		return true, err
	})
	d.txs.Put(t)
	return taken, state
}

// Acquire implements direct.Calls.
func (d *Direct) Acquire(key, owner string, lease int64, shared, waits bool) (token int64, state direct.State) {
	k := textBytes(key)
	state = d.change(direct.KindAcquire, k, func(tx *engine.Tx) (bool, error) {
		o := engine.AcquireOptions{Lease: lease, Shared: shared, Waits: waits, Behind: tx.Behind(k, engine.Lock, false)}
		g, ok, err := tx.AcquireLock(k, textBytes(owner), o)
		if !ok && err == nil && waits {
			err = command.ErrBlocked
		}
		token = g.Token
		return ok, err
	})
	return token, state
}

// Renew implements direct.Calls.
func (d *Direct) Renew(key, owner string, token, lease int64) direct.State {
	k := textBytes(key)
	return d.change(direct.KindRenew, k, func(tx *engine.Tx) (bool, error) {
		ok, err := tx.RenewLock(k, textBytes(owner), token, lease)
		if !ok && err == nil {
			err = command.ReplyError("LOST")
		}
		return ok, err
	})
}

// Release implements direct.Calls.
func (d *Direct) Release(key, owner string, token int64) direct.State {
	k := textBytes(key)
	return d.change(direct.KindRelease, k, func(tx *engine.Tx) (bool, error) { return tx.ReleaseLock(k, textBytes(owner), token) })
}

// Push implements direct.Calls.
func (d *Direct) Push(key string, j direct.Job) (id string, state direct.State) {
	if len(j.Payload) > longValue {
		return "", direct.Elsewhere
	}
	k := textBytes(key)
	t := d.txs.Get().(*call)
	t.add = engine.QueueAdd{Payload: textBytes(j.Payload), Due: j.At, Expire: j.Expire, Priority: uint8(j.Priority),
		MaxLen: j.MaxLen, Unique: j.Unique, Replace: j.Replace}
	if j.ID != "" {
		t.add.ID = textBytes(j.ID)
	}
	state = d.changeIn(t, direct.KindPush, k, func(tx *engine.Tx) (bool, error) {
		if j.At == 0 {
			t.add.Due = tx.DeadlineAfter(j.Delay)
		}
		made, added, err := tx.QueueAdd(k, &t.add)
		if j.ID == "" {
			t.val = append(t.val[:0], made...)
		}
		return added, err
	})
	if id = j.ID; id == "" && state == direct.Done {
		id = string(t.val)
	}
	t.add = engine.QueueAdd{}
	d.txs.Put(t)
	return id, state
}
