package conn

import (
	"errors"

	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/resp"
)

var (
	// ErrNil means that the key or the element does not exist. The typed methods return it; Do returns a Value
	// whose IsNull is true.
	ErrNil = errors.New("ebb: nil")
	// ErrNotSet is the error of Set if its condition, NX or XX, does not hold.
	ErrNotSet = errors.New("ebb: not set: the condition does not hold")
	// ErrConflict is the error of Watched.Tx if a watched key has changed. The transaction did
	// nothing; the caller may try again.
	ErrConflict = errors.New("ebb: a watched key has changed")
	// ErrClosed is the error of calls after Close.
	ErrClosed = errors.New("ebb: closed")
	// ErrUnavailable is in the chain of every error about a backend that cannot be reached or is
	// not ready: it loads data, fails over, or moves the key. If it is not ready, the chain also
	// has a ReplyError, and the command has not run.
	ErrUnavailable = drivers.ErrUnavailable
	// ErrFiles is in the chain of errors about files that an embedded engine cannot use: the path is not a
	// directory, permissions are missing, or a file is damaged. Trying again does not help until that is
	// corrected.
	ErrFiles = errors.New("ebb: the files cannot be used")
	// ErrNotReplicated is in the chain of the error of a Replicated view's call that has run on
	// the master, but that fewer replicas have received than the view requires. A failover may
	// lose the change. ErrUnavailable is in the chain too, unless the server refused WAIT.
	ErrNotReplicated = errors.New("ebb: the command has run, but its write is not on enough replicas")
	// ErrInterrupted is the error of Subscription.Next if the connection was lost, and again when the
	// subscription has a new connection. Only messages that were sent in between are lost.
	ErrInterrupted = errors.New("ebb: the subscription was interrupted, messages may be lost")
	// ErrURL is in the chain of errors about a URL that Open does not support.
	ErrURL = errors.New("ebb: cannot open this URL")
	// ErrStateful is the error of Do and of batches for commands that change the state of a
	// connection. A call borrows its connection, so such a command would affect other calls.
	ErrStateful = errors.New("ebb: the command changes its connection")
	// ErrArgument is in the chain of errors about an argument of the caller: a type without an
	// obvious text, such as a time.Duration, keys of several slots in one transaction, or a
	// number, a name or an option that a method does not accept. The call has sent nothing.
	ErrArgument = drivers.ErrArgument
	// ErrValue is in the chain of errors about stored data that a Codec or an object cannot
	// decode, for instance data of another program or version.
	ErrValue = errors.New("ebb: stored data that cannot be read")
	// ErrRemote is the error of a call that needs an embedded engine, if the connection leads to a server.
	ErrRemote = errors.New("ebb: not an embedded engine")
)

// ReplyError is an error reply. errors.As finds it; its first word is the code.
type ReplyError = resp.ReplyError

// Temporary reports whether an error may be temporary, so that the caller may try the same call
// again: the backend cannot be reached, starts, changes its role, moves the key, has no memory,
// or runs a long script. It does not say whether the call has run: see ErrUnavailable. The end
// of a context is not temporary.
func Temporary(err error) bool {
	if errors.Is(err, ErrUnavailable) {
		return true
	}
	var refused ReplyError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code() {
	case "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "UNBLOCKED", "FAILOVER",
		"NOREPLICAS", "BUSY", "MISCONF", "OOM":
		return true
	}
	return false
}
