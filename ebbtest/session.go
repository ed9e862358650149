package ebbtest

import (
	"errors"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
)

// session passes requests one by one to the engine's session, except those that a fault
// has stopped.
type session struct {
	reactor.Session
	f *faults
	p wire.Parser

	begun bool // the engine has a request and wants another call for it,
	held  int  // and has not consumed this many of its bytes yet
	lose  bool // its reply is lost
}

// Serve implements reactor.Session.
func (s *session) Serve(in, out []byte) (consumed int, _ []byte, v reactor.Verdict) {
	for {
		n := s.held
		if !s.begun {
			args, length, err := s.p.Next(in[consumed:])
			switch {
			case err != nil: // the engine replies with the error
				n, out, v = s.Session.Serve(in[consumed:], out)
				return consumed + n, out, v
			case length == 0:
				return consumed, out, reactor.Continue
			}
			err = s.f.decide(words(args))
			var reply conn.ReplyError
			switch {
			case errors.As(err, &reply):
				out = append(append(append(out, '-'), reply...), "\r\n"...)
				consumed += length
				continue
			case errors.Is(err, ErrLost):
				s.lose = true
			case err != nil:
				return consumed + length, out, reactor.Close
			}
			n = length
		}
		mark := len(out)
		used, more, v := s.Session.Serve(in[consumed:consumed+n], out)
		out, consumed = more, consumed+used
		if s.lose {
			out = out[:mark]
		}
		if s.begun = v == reactor.Park || v == reactor.Yield; s.begun {
			s.held = n - used
			return consumed, out, v
		}
		s.held = 0
		if v == reactor.Close || s.lose {
			return consumed, out, reactor.Close
		}
	}
}

// Closed implements reactor.Session.
func (s *session) Closed(err error) {
	s.Session.Closed(err)
	s.f.end(s)
}

// Want implements reactor.Session.
func (s *session) Want() int { return s.p.Want() }

// The methods below are the optional parts of a session.

func (s *session) PeerClosed() {
	if w, ok := s.Session.(reactor.PeerWatcher); ok {
		w.PeerClosed()
	}
}

func (s *session) Unsent() {
	if w, ok := s.Session.(reactor.UnsentWatcher); ok {
		w.Unsent()
	}
}

func (s *session) OutputExceeded(pending int) bool {
	l, ok := s.Session.(reactor.OutputLimiter)
	return ok && l.OutputExceeded(pending)
}

func (s *session) IdleCheck(now int64) bool {
	c, ok := s.Session.(reactor.IdleChecker)
	return ok && c.IdleCheck(now)
}

func words(args [][]byte) []string {
	s := make([]string, len(args))
	for i, a := range args {
		s[i] = string(a)
	}
	return s
}
