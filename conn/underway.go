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

// Settle waits until no command is under way any more of the calls whose errors are in the chain of err, or until ctx ends. A
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
