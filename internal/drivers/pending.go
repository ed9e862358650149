package drivers

import (
	"context"

	"github.com/ebbdb/ebb/resp"
)

// pendingReply is the error of a call whose command has no reply yet.
type pendingReply struct {
	error
	reply func(ctx context.Context) (v resp.Value, ok bool)
}

func (p *pendingReply) Unwrap() error { return p.error }

// PendingReply is driverutil.PendingReply, which describes it.
func PendingReply(err error, reply func(ctx context.Context) (v resp.Value, ok bool)) error {
	return &pendingReply{err, reply}
}

// noReply is the error of a call whose command was sent and got no reply.
type noReply struct {
	error
	again func(fn func(life context.Context))
}

func (n *noReply) Unwrap() error { return n.error }

// NoReply is driverutil.NoReply, which describes it.
func NoReply(err error, again func(fn func(life context.Context))) error { return &noReply{err, again} }

// RepeatLater has fn, which takes back what a failed call may have done, run once more later, if err has a NoReply in its chain.
// It reports whether it has. fn must be harmless if there is nothing to take back, and must not depend on the call.
func RepeatLater(err error, fn func(life context.Context)) bool {
	switch e := err.(type) { //nolint:errorlint // it walks over the whole chain
	case *noReply:
		e.again(fn)
		return true
	case interface{ Unwrap() error }:
		return RepeatLater(e.Unwrap(), fn)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if RepeatLater(one, fn) {
				return true
			}
		}
	}
	return false
}

// AwaitReply waits for the replies of all calls whose PendingReply is in the chain of err, or until ctx ends. A program that
// takes back what a failed call may have done calls it first: otherwise the command that takes it back may run before the command
// of the call. late is the last reply that has come; ok is false if there is none. AwaitReply returns at once for other errors,
// and for nil.
func AwaitReply(ctx context.Context, err error) (late resp.Value, ok bool) {
	switch e := err.(type) { //nolint:errorlint // it walks over the whole chain
	case *pendingReply:
		return e.reply(ctx)
	case interface{ Unwrap() error }:
		return AwaitReply(ctx, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if v, has := AwaitReply(ctx, one); has {
				late, ok = v, true
			}
		}
	}
	return late, ok
}
