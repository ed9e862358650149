package queue

import "errors"

var (
	// ErrEmpty is the error of TryPop if no job is due.
	ErrEmpty = errors.New("queue: no job is due")
	// ErrFull is in the chain of the error of a push that would exceed MaxLen. The push added
	// nothing.
	ErrFull = errors.New("the queue is full")
	// ErrDuplicate is in the chain of the error of a push that added nothing, because a job with
	// the id is in the queue, or because of Unique.
	ErrDuplicate = errors.New("a job with this id exists or existed")
	// ErrNever is in the chain of the error of Schedule if the rule fits no instant from now, or From, to Until,
	// within eight years.
	ErrNever = errors.New("the schedule would never be due")
	// ErrNoJob is in the chain of the error of a call about one job if the queue, or its dead letters, have no
	// job with the id, or the job is not in the state that the call needs.
	ErrNoJob = errors.New("there is no such job")
	// ErrLost is in the chain of the errors of Ack, Nack, Fail, Bury and Extend if the caller no longer has the
	// job: its lease was over, it was cancelled, or it was settled before. It is also the cause with which the
	// context of a function of Run ends when its job is lost.
	ErrLost = errors.New("the lease is lost")
	// ErrTimeout is the cause with which the context of a function of Run ends after the job's Timeout, and is
	// in the chain of the reason of that failure.
	ErrTimeout = errors.New("the job has run for its timeout")
	// If the error of a function of Run has ErrPermanent in its chain, the job becomes a dead
	// letter at once.
	ErrPermanent = errors.New("queue: not worth another try")
)
