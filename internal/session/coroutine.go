package session

import (
	"github.com/ebbdb/ebb/internal/command"
	"iter"
)

// coroutine is a goroutine that belongs to a network loop. The loop switches to it for commands of unknown
// duration: scripts. Nearly all of them end at once, and the loop continues; a switch there and back takes
// 0.1 us. A command that does not end in time is suspended at any point, the loop parks the session, and a
// goroutine in the background resumes the coroutine:
//
//	loop ──▶ coroutine.run ─ ▶ execute ──▶ script ──▶ ...
//	  ▲                            │            │ too long: suspend
//	  ├──── it has ended ◀─────────┘            │
//	  └──── it has not: park ◀──────────────────┘
//	        startParked: a goroutine ──▶ coroutine.resume ──▶ ... ──▶ it has ended
type coroutine struct {
	next    func() (struct{}, bool)
	stop    func()
	suspend func(struct{}) bool

	c    *Session
	spec *command.Spec
	args [][]byte
	what outcome
	over bool

	memory command.ArgMemory // for the arguments of scripts, which keep no reference to them
}

// keepMemory is the most memory, in bytes, that a coroutine keeps for the next command.
const keepMemory = 64 << 10

func newCoroutine() *coroutine {
	st := new(coroutine)
	st.next, st.stop = iter.Pull(func(yield func(struct{}) bool) {
		st.suspend = yield
		for {
			st.what = st.c.execute(st.spec, st.args)
			st.over, st.c, st.args = true, nil, nil
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return st
}

// run runs a command until it ends or suspends itself, and reports whether it has
// ended.
func (st *coroutine) run(c *Session, spec *command.Spec, args [][]byte) (over bool) {
	st.c, st.spec, st.args, st.over = c, spec, args, false
	st.next()
	return st.over
}

// resume continues the command to its end; the command does not suspend itself again.
func (st *coroutine) resume() outcome {
	st.next()
	return st.what
}

// runOnCoroutine runs a command on the loop's coroutine. It keeps the output of the command apart
// from the replies before it, because the loop may send these while the command still runs.
func (c *Session) runOnCoroutine(spec *command.Spec, args [][]byte) outcome {
	l := c.stats
	if l.coroutine == nil {
		l.coroutine = newCoroutine()
	}
	st := l.coroutine
	replies := c.out.Buf
	c.out.Buf = l.scratch[:0]
	c.coroutine = st
	if spec.Has(command.Keeps) {
		args = command.CopyArgs(args)
	} else {
		args = st.memory.Copy(args)
	}
	if st.run(c, spec, args) {
		c.coroutine = nil
		l.scratch = c.out.Buf
		c.out.Buf = append(replies, c.out.Buf...)
		if cap(l.scratch) > keepMemory {
			l.scratch = nil
		}
		if st.memory.Size() > keepMemory {
			st.memory = command.ArgMemory{}
		}
		return st.what
	}
	l.coroutine, l.scratch = nil, nil
	c.parked = &parked{spec: spec, args: args, coroutine: st, out: c.out.Buf}
	c.out.Buf = replies
	c.batch.calls-- // it is counted when it ends
	return inBackground
}

// leaveLoop suspends the session's command if it runs on a coroutine, so that the loop continues without it.
// It does nothing for other commands. When it returns, the command runs in the background and may run for
// long.
func (c *Session) leaveLoop() {
	if st := c.coroutine; st != nil {
		c.coroutine, c.loop = nil, false
		st.suspend(struct{}{})
	}
}
