// Package direct has the calls of an embedded engine that pass by its sessions: a typed call instead of words, a parsed command
// and a parsed reply.
//
//	conn.Conn.Get ──▶ Calls.Get ──▶ engine        the short way
//	      │               │ Elsewhere
//	      └──▶ Conn.Do ──▶ session ──▶ engine     the way of every command
//
// A Driver that has Calls implements Driver. Calls do a call only if nothing but its own work is to be done. In any other case
// they have done nothing and reply Elsewhere, and the caller sends the command. So each rare case, and each error, has the
// command as its one implementation. docs/design/direct.md lists the cases.
//
// Start reading at Calls, then at calls.Direct, which implements them.
package direct

import (
	"sync"
	"unsafe"
)

// State is the outcome of a call.
type State uint8

// The outcomes.
const (
	Elsewhere State = iota // nothing has happened: send the command
	Done
	Absent // there is no such key, or the condition does not hold
)

// Calls are the direct calls of one database. A key or a value may share its bytes with the caller: no method keeps or changes
// them. Their methods are safe for concurrent use.
type Calls interface {
	// Get returns a string: GET.
	Get(key string) (string, State)
	// AppendGet appends a string to dst. It returns dst unless the State is Done.
	AppendGet(dst []byte, key string) ([]byte, State)
	// Set stores a string: SET. Absent: the condition does not hold.
	Set(key, val string, o SetOptions) State
	// HGet returns the value of a field of a hash: HGET.
	HGet(key, field string) (string, State)
	// HSet stores a field of a hash: HSETEX. Absent: the field exists, and NX is set.
	HSet(key, field, val string, o FieldOptions) State
	// Take takes from a rate limiter, if the limiter allows it: RL.TAKE. The limiter's key is name, or name:key unless key is "".
	Take(name, key string, o *TakeOptions, cost int64, peek bool) (Taken, State)
	// Acquire requests a lock for an owner, under a lease in ms: LOCK.ACQUIRE. Absent: it is refused. With waits a refusal is
	// Elsewhere: the command then waits.
	Acquire(key, owner string, lease int64, shared, waits bool) (token int64, state State)
	// Renew renews the lease of a lock: LOCK.RENEW. A lease that is lost is Elsewhere.
	Renew(key, owner string, token, lease int64) State
	// Release releases a lock: LOCK.RELEASE. Absent: the owner did not hold it with this token.
	Release(key, owner string, token int64) State
	// Push adds a job to a delay queue, and returns its id: DQ.ADD. Absent: the queue does not add it, since it has, or had, one with
	// this id, or without an id one with this payload. A full queue is Elsewhere.
	Push(key string, j Job) (id string, state State)
}

// SetOptions are those of SET. At most one of the deadlines is set, and at most one of the conditions.
type SetOptions struct {
	TTL     int64 // ms, above 0; 0: none
	At      int64 // ms since 1970, above 0; 0: none
	KeepTTL bool
	NX, XX  bool
}

// FieldOptions are those of HSETEX.
type FieldOptions struct {
	TTL    int64 // ms, above 0; 0: none
	MaxLen int64 // 0: no bound
	NX     bool
}

// TakeOptions are those of RL.TAKE.
type TakeOptions struct {
	Algo          uint8 // a limiter.Algo
	Limit, Period int64 // Period in us
	Burst         int64 // GCRA; 0: Limit
}

// Taken is the reply of RL.TAKE.
type Taken struct {
	Allowed          bool
	Limit, Remaining int64
	Retry, Reset     int64 // us
}

// Job is a job that DQ.ADD adds.
type Job struct {
	ID             string // "": the queue makes one
	Payload        string
	Delay, At      int64 // ms; At since 1970, 0: Delay from now
	MaxLen         int64 // 0: none
	Priority       int
	Expire, Unique int64 // ms; 0: none
	Replace        bool
}

// Text returns bytes as a string, without a copy. The bytes must not change while the string is in use.
func Text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Driver is implemented by a conn.Driver with direct calls. Its views, such as that of Conn.Replicated, do not have them. A program's
// own Driver may embed a Conn, and has no calls then: they would pass by that Driver.
type Driver interface {
	// DirectCalls returns the calls, nil if there are none.
	DirectCalls() Calls
}

// Handle is the part of a conn.Conn that has the direct calls. The Conn embeds it, and so the method that Of needs is promoted. The
// method is not exported: packages of this module use Of, Keep and Idle, and a program that has a Conn can call none of them.
type Handle struct {
	calls Calls
	kept  *kept // nil without calls
}

// Conn is a *conn.Conn, which embeds a Handle.
type Conn interface{ self() *Handle }

func (h *Handle) self() *Handle { return h }

// kept is a value that a package of the toolkit keeps with a Conn and its views.
type kept struct {
	once  sync.Once
	value any
}

// NewHandle returns the Handle of a Conn over a driver.
func NewHandle(driver any) Handle {
	if d, ok := driver.(Driver); ok {
		if calls := d.DirectCalls(); calls != nil {
			return Handle{calls, &kept{}}
		}
	}
	return Handle{}
}

// Of returns the direct calls of a Conn; nil if it has none. The compiler inlines it for a *conn.Conn: it costs the read of a field.
func Of(c Conn) Calls { return c.self().calls }

// Keep returns the value that make returned at the first call. internal/locking keeps the timers of leases there. Without direct calls
// it keeps nothing, and returns nil.
func Keep(c Conn, make func() any) any {
	k := c.self().kept
	if k == nil {
		return nil
	}
	k.once.Do(func() { k.value = make() })
	return k.value
}

// Idler is a kept value that has timers. Idle stops those that nothing needs; it is called when the Conn is closed.
type Idler interface{ Idle() }

// Idle calls the kept value's Idle.
func Idle(c Conn) {
	if i, ok := Keep(c, func() any { return nil }).(Idler); ok {
		i.Idle()
	}
}
