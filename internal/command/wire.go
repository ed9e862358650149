package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/engine"
)

// The texts of errors on the wire. Clients match on the first word, and some on
// the whole line, so these are Redis's.
const (
	ErrSyntax     = ReplyError("ERR syntax error")
	ErrWrongType  = ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrNotInteger = ReplyError("ERR value is not an integer or out of range")
	ErrNotFloat   = ReplyError("ERR value is not a valid float")
	ErrNoSuchKey  = ReplyError("ERR no such key")
	ErrOOM        = ReplyError("OOM command not allowed when used memory > 'maxmemory'.")
	ErrApart      = ReplyError("OOM subscriptions, watched keys, transactions, users and scripts take more than maxmemory together")
	ErrNoAuth     = ReplyError("NOAUTH Authentication required.")
	ErrWrongPass  = ReplyError("WRONGPASS invalid username-password pair or user is disabled.")
	ErrOverflow   = ReplyError("ERR increment or decrement would overflow")
	ErrNaN        = ReplyError("ERR increment would produce NaN or Infinity")
	ErrTooLarge   = ReplyError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	ErrNotHLL     = ReplyError("WRONGTYPE Key is not a valid HyperLogLog string value.")
	ErrCorruptHLL = ReplyError("INVALIDOBJ Corrupted HLL object detected")
	ErrDBIndex    = ReplyError("ERR DB index is out of range")
	ErrExecAbort  = ReplyError("EXECABORT Transaction discarded because of previous errors.")
	ErrBusyKey    = ReplyError("BUSYKEY Target key name already exists.")
	ErrPayload    = ReplyError("ERR DUMP payload version or checksum are wrong")
	ErrBadFormat  = ReplyError("ERR Bad data format")
)

// ErrNoDatabases is the error of a command on several databases, in cluster mode.
func ErrNoDatabases(what string) error {
	return ReplyError("ERR " + what + " is not allowed in cluster mode")
}

// wireErrors holds the wire texts of the engine's errors.
var wireErrors = []struct {
	err  error
	text ReplyError
}{
	{engine.ErrWrongType, ErrWrongType},
	{engine.ErrNotInteger, ErrNotInteger},
	{engine.ErrNotFloat, ErrNotFloat},
	{engine.ErrOverflow, ErrOverflow},
	{engine.ErrNaN, ErrNaN},
	{engine.ErrInfinite, "ERR value is NaN or Infinity"},
	{engine.ErrFieldNotInteger, "ERR hash value is not an integer"},
	{engine.ErrFieldNotFloat, "ERR hash value is not a float"},
	{engine.ErrTooLarge, ErrTooLarge},
	{engine.ErrNoKey, ErrNoSuchKey},
	{engine.ErrIndex, "ERR index out of range"},
	{engine.ErrNotHLL, ErrNotHLL},
	{engine.ErrCorruptHLL, ErrCorruptHLL},
	{engine.ErrBusyKey, ErrBusyKey},
	{engine.ErrPayload, ErrPayload},
	{engine.ErrBadFormat, ErrBadFormat},
	{engine.ErrNotSortable, "ERR One or more scores can't be converted into double"},
	{engine.ErrRules, "ERR a database has 128 expiry rules at most"},
	{engine.ErrUnpacks, "OOM the value unpacks to more bytes than maxmemory allows, or the machine has"},
	{engine.ErrFull, "OOM the shard of this key holds 32 GiB of records, which is all it can; spread the keys over more hash tags"},
}

// telling reports whether what wraps an error names what a client of a newer server needs
// to know: a type or a version that ebb does not read.
func telling(err error) bool { return err == engine.ErrPayload || err == engine.ErrBadFormat }

// WireText returns the text of an error reply.
func WireText(err error) string {
	if r, ok := errors.AsType[ReplyError](err); ok {
		return string(r)
	}
	for _, w := range wireErrors {
		switch {
		case err == w.err || errors.Is(err, w.err) && !telling(w.err):
			return string(w.text)
		case errors.Is(err, w.err):
			return "ERR " + err.Error()
		}
	}
	if full, ok := errors.AsType[*engine.BoundError](err); ok {
		return cleantext.Reply("FULL " + full.Error())
	}
	return "ERR " + err.Error()
}
