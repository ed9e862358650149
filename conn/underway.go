package conn

import "context"

// underWay is the error of a call whose command is still under way.
type underWay struct {
	error
	answer func(ctx context.Context) (v Value, ok bool)
}

func (u *underWay) Unwrap() error { return u.error }

// UnderWay returns err, the error of a call that ends before its command was answered, so that Settle can wait for the answer.
// A Driver uses it where the command may run after the commands of later calls, because these travel on other connections.
// answer returns the answer when it has come; ok is false if it can come no more, and if its ctx has ended. It may be called
// more than once.
func UnderWay(err error, answer func(ctx context.Context) (v Value, ok bool)) error {
	return &underWay{err, answer}
}

// unanswered is the error of a call whose command was sent and got no answer.
type unanswered struct {
	error
	again func(fn func(life context.Context))
}

func (u *unanswered) Unwrap() error { return u.error }

// Unanswered returns err, the error of a call whose command was sent and got no answer: its connection has ended, or its time
// limit has passed. The command may still reach the server, also when Settle has returned, because proxies close a connection
// before they have passed on what it carried. again has a function run some time later, in a goroutine that the Driver's Close
// waits for; life ends with the Driver.
func Unanswered(err error, again func(fn func(life context.Context))) error {
	return &unanswered{err, again}
}

// Again has fn, which takes back what a failed call may have done, run once more later, if err has Unanswered in its chain. It
// reports whether it has. fn must be harmless if there is nothing to take back, and must not depend on the call.
func Again(err error, fn func(life context.Context)) bool {
	switch e := err.(type) { //nolint:errorlint // it walks over the whole chain
	case *unanswered:
		e.again(fn)
		return true
	case interface{ Unwrap() error }:
		return Again(e.Unwrap(), fn)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if Again(one, fn) {
				return true
			}
		}
	}
	return false
}

// Settle waits until no command of the calls whose errors are in the chain of err is under way, or until ctx ends. A
// program that takes back what a failed call may have done calls it first: otherwise the command that takes it back may run
// before the command of the call. late is the last answer that has come; ok is false if there is none. Settle returns at once
// for other errors, and for nil.
func Settle(ctx context.Context, err error) (late Value, ok bool) {
	switch e := err.(type) { //nolint:errorlint // it walks over the whole chain
	case *underWay:
		return e.answer(ctx)
	case interface{ Unwrap() error }:
		return Settle(ctx, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if v, has := Settle(ctx, one); has {
				late, ok = v, true
			}
		}
	}
	return late, ok
}
