package queue

import "errors"

var (
	// ErrEmpty is returned by TryPop when no job is due.
	ErrEmpty = errors.New("queue: no job is due")
	// ErrFull is in the chain of the error of a push that the bound refused: it
	// added nothing.
	ErrFull = errors.New("it is full")
	// ErrDuplicate is in the chain of the error of a push that added nothing,
	// because a job with the id is in the queue, or because of Unique.
	ErrDuplicate = errors.New("there is, or was, such a job")
	// ErrLost is in the chain of the error of Ack, Nack, Fail, Bury and Extend when
	// the job is not the caller's any more: its lease was over, it was cancelled, or
	// it was settled before. It is the cause of a context of Run's that ends for it.
	ErrLost = errors.New("the lease is lost")
	// ErrPermanent in the chain of what a function of Run's returns makes the job a
	// dead letter at once.
	ErrPermanent = errors.New("queue: not worth another try")
)
