package command

import (
	"errors"
	"strings"
	"time"
)

// ClientUse says what a client must know of a command besides its Flags and its grammar.
type ClientUse uint8

const (
	// Stateful commands change the connection for later commands: a client refuses them on a
	// connection that callers share.
	Stateful ClientUse = 1 << iota
	// Pipelined commands may go into an automatic pipeline although they are not Fast:
	// the caller decides how long they take.
	Pipelined
)

// StreamUse is a command's part in the replication stream, in addition to that of its Flags.
type StreamUse uint8

const (
	// StreamControl commands are in the stream and change no data.
	StreamControl StreamUse = 1 << iota
	// StreamEffect commands are newer than Redis 7.0, and ebb's own log has them. A
	// replica that does not know one keeps the data and misses a deadline only.
	StreamEffect
)

// FanOut says what a client does in a cluster with a command that concerns all masters,
// and how it makes one reply of theirs.
type FanOut uint8

const (
	FanOutNone FanOut = iota
	FanOutLast        // sends it to all masters; the last reply
	FanOutSum         // ... the sum of the integers
	FanOutJoin        // ... the elements of all arrays
	FanOutAny         // ... the first reply that is not null
	FanOutScan        // walks over one master after the other, by the cursor
	FanOutOne         // sends it to one node, although the command has the tip request_policy of all
)

// Timeout says where a request names the longest time that it waits.
type Timeout struct {
	// At is the position of the argument; a negative one counts from the end, -1 is the
	// last.
	At int
	// Keyword, if it is not "", is the option before the argument; without the option
	// the command does not wait.
	Keyword string
	// Unit is that of the argument.
	Unit time.Duration
}

// Timeout returns where a blocking command's request says how long it waits, the zero value for
// other commands. It is derived from the grammar.
func (s *Spec) Timeout() Timeout { return s.timeout }

// AutoPipelined reports whether a client may send the command together with those of
// other callers. A command whose Timeout has a Keyword may not with that option.
func (s *Spec) AutoPipelined() bool {
	quick := s.Has(Fast) && (!s.Has(Blocking) || s.timeout.Keyword != "")
	return len(s.Sub) == 0 && s.parent == nil && (quick || s.Client&Pipelined != 0)
}

// MayWrite reports whether the command may change data, by a script if it runs one.
func (s *Spec) MayWrite() bool { return s.Has(Write) || s.Has(Scripts) && !s.Has(ReadOnly) }

// OfEbb reports whether only ebb has the command: neither Redis nor Valkey has it built in.
func (s *Spec) OfEbb() bool {
	return strings.HasPrefix(s.Since, "0.") || strings.Contains(s.Name, ".")
}

// prepareClient derives the properties that clients need, and checks those that the Spec gives.
func (s *Spec) prepareClient() error {
	s.timeout = s.deriveTimeout()
	all := false
	for _, tip := range s.Tips {
		all = all || tip == "request_policy:all_shards" || tip == "request_policy:all_nodes"
	}
	switch {
	case s.Has(Blocking) && s.timeout.Unit == 0:
		return errors.New(`is Blocking, and no argument says how long it waits: name it "timeout", "timeout-ms" or "milliseconds"`)
	case all && s.FanOut == FanOutNone:
		return errors.New("has the tip that it concerns all shards or nodes: say by FanOut what a client does")
	case !all && s.FanOut != FanOutNone && s.FanOut != FanOutScan:
		return errors.New("has a FanOut without the tip request_policy:all_shards or all_nodes")
	case s.Stream&StreamControl != 0 && (s.Has(Write) || s.Has(MayReplicate)):
		return errors.New("changes data, and so is in the stream without StreamControl")
	case s.Stream&StreamEffect != 0 && !s.Has(Write):
		return errors.New("is a StreamEffect without the flag Write")
	}
	return nil
}

// deriveTimeout finds the argument of a blocking command that says how long it waits.
func (s *Spec) deriveTimeout() Timeout {
	if !s.Has(Blocking) {
		return Timeout{}
	}
	at, fixed := s.words(), true
	for i := range s.Args {
		a := &s.Args[i]
		if t := (Timeout{At: at, Keyword: a.Token, Unit: a.waitUnit()}); t.Unit != 0 {
			tail, tailFixed := seqWidth(s.Args[i+1:])
			switch {
			case a.Token != "":
				t.At = 0
			case !fixed && tailFixed:
				t.At = -1 - tail
			case !fixed:
				return Timeout{}
			}
			return t
		}
		n, known := a.width()
		at, fixed = at+n, fixed && known
	}
	return Timeout{}
}

// waitUnit is the unit of an argument that says how long a command waits, 0 for others.
func (a *Arg) waitUnit() time.Duration {
	switch a.Name {
	case "timeout", "timeout-ms", "milliseconds":
	default:
		return 0
	}
	switch {
	case a.Kind == KindDouble:
		return time.Second
	case a.Kind == KindInteger && (a.Token != "" || strings.HasPrefix(a.Name, "timeout")):
		return time.Millisecond
	}
	return 0
}
