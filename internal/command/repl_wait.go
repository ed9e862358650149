package command

import (
	"slices"

	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/resp"
)

// WAIT and WAITAOF. A client waits as for a key (block.go), in a line of the
// master's: acknowledgements end the wait, or its time.

// ackWait is somebody who waits for acknowledgements.
type ackWait struct {
	over func() bool // it has ended otherwise
	met  func() bool // what it waits for is there
	end  func()      // is called once, if so
}

// wait has attend look after a wait.
func (m *masterSide) wait(w *ackWait) {
	m.mu.Lock()
	m.waits = append(m.waits, w)
	m.mu.Unlock()
	m.begin()
	m.ask.Store(true)
	m.nudge()
}

// settleWaits ends the waits whose condition is met.
func (m *masterSide) settleWaits() {
	m.mu.Lock()
	all := slices.Clone(m.waits)
	m.mu.Unlock()
	if len(all) == 0 {
		return
	}
	var ended []*ackWait
	for _, w := range all {
		over := w.over()
		if !over && w.met() {
			w.end()
			over = true
		}
		if over {
			ended = append(ended, w)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = slices.DeleteFunc(m.waits, func(w *ackWait) bool { return slices.Contains(ended, w) })
}

// Wake implements oplog.Waker: something was synced.
func (m *masterSide) Wake() { m.nudge() }

// online is the number of replicas that receive the stream.
func (m *masterSide) online() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		if f.at() == followOnline {
			n++
		}
	}
	return n
}

// count is the number of replicas that have acknowledged an offset; of is what they
// acknowledge, by default that they have it in memory.
func (m *masterSide) count(offset int64, of func(*replicaConn) int64) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.followers {
		acked := f.acked.Load()
		if of != nil {
			acked = of(f)
		}
		if f.at() == followOnline && acked >= offset {
			n++
		}
	}
	return n
}

func syncedBy(f *replicaConn) int64 { return f.synced.Load() }

const (
	errWaitOnReplica    = ReplyError("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
	errWaitAOFOnReplica = ReplyError("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.")
	errWaitAOFOff       = ReplyError("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
)

var specWait = Spec{
	Name: "wait", Group: GroupGeneric, Since: "3.0.0", Complexity: "O(1)",
	Summary:    "Waits until replicas have acknowledged what was written, or for so many milliseconds; 0 for ever.",
	Flags:      Blocking,
	Categories: CatConnection, Without: CatKeyspace,
	Args:    []Arg{Int("numreplicas"), Int("timeout")},
	Tips:    []string{"request_policy:all_shards", "response_policy:agg_min"},
	Replies: "The number of replicas that have acknowledged everything the server had written when it was asked. Inside MULTI, and in a script, it does not wait.",
	Examples: `
> SET k v
OK
> WAIT 0 1000
(integer) 0
`,
	Run: runWait,
}

func runWait(c *Ctx) error {
	replicas, ok := resp.ParseInt(c.Args[1])
	if !ok {
		return ErrNotInteger
	}
	timeout, err := parseMillis(c.Args[2])
	if err != nil {
		return err
	}
	if c.Service.repl.isReplica() {
		return errWaitOnReplica
	}

	m, offset := &c.Service.master, c.Service.DB.Log().End()
	reply := func(c *Ctx) { c.Out.Int(int64(m.count(offset, nil))) }
	if int64(m.count(offset, nil)) >= replicas {
		reply(c)
		return nil
	}
	return c.awaitAcks(timeout, reply, func() bool { return int64(m.count(offset, nil)) >= replicas })
}

// awaitAcks makes the command wait until something is acknowledged.
func (c *Ctx) awaitAcks(timeout int64, reply func(*Ctx), met func() bool) error {
	err := c.Block(Wait{Millis: timeout, Refused: reply, Expired: reply})
	if err == errBlocked && c.waiter == nil {
		w := c.Session.waiting
		c.Service.master.wait(&ackWait{over: w.over.Load, met: met, end: func() { w.answer(nil, reply) }})
	}
	return err
}

var specWaitAOF = Spec{
	Name: "waitaof", Group: GroupGeneric, Since: "7.2.0", Complexity: "O(1)",
	Summary:    "Waits until what was written is synced to the append-only file here (1) and on replicas, or for so many milliseconds; 0 for ever.",
	Flags:      Blocking,
	Categories: CatConnection, Without: CatKeyspace,
	Args:     []Arg{Int("numlocal"), Int("numreplicas"), Int("timeout")},
	Tips:     []string{"request_policy:all_shards", "response_policy:agg_min"},
	Replies:  "Whether it is synced here, 0 or 1, and the number of replicas that say that they have synced it. Inside MULTI, and in a script, it does not wait.",
	Errors:   []string{string(errWaitAOFOff) + ": numlocal is 1 and there is no append-only file"},
	Examples: "> SET k v\nOK\n> WAITAOF 0 0 1000\n1) (integer) 0\n2) (integer) 0\n> WAITAOF 1 0 0\n(error) " + string(errWaitAOFOff) + "\n",
	Run:      runWaitAOF,
}

func runWaitAOF(c *Ctx) error {
	local, ok1 := resp.ParseInt(c.Args[1])
	replicas, ok2 := resp.ParseInt(c.Args[2])
	switch {
	case !ok1 || !ok2:
		return ErrNotInteger
	case local < 0 || local > 1:
		return ReplyError("ERR value is out of range, value must between 0 and 1")
	case replicas < 0:
		return ReplyError("ERR value is out of range, must be positive")
	}
	timeout, err := parseMillis(c.Args[3])
	if err != nil {
		return err
	}
	s := c.Service
	files := s.keeper != nil && appends(s.keeper)
	switch {
	case s.repl.isReplica():
		return errWaitAOFOnReplica
	case local == 1 && !files:
		return errWaitAOFOff
	}

	m, log := &s.master, s.DB.Log()
	offset := log.End()
	here := func() int64 {
		if files && s.keeper.AppendOnly() && log.Synced() >= offset { // else a first base is to come
			return 1
		}
		return 0
	}
	reply := func(c *Ctx) {
		c.Out.Array(2)
		c.Out.Int(here())
		c.Out.Int(int64(m.count(offset, syncedBy)))
	}
	met := func() bool { return here() >= local && int64(m.count(offset, syncedBy)) >= replicas }
	if met() {
		reply(c)
		return nil
	}
	if local == 1 {
		log.OnSynced(offset, m)
	}
	return c.awaitAcks(timeout, reply, met)
}

// appends reports whether there are append-only files.
func appends(k *durable.Keeper) bool { return k.Info().AppendOnly }
