package session

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/resp"
)

// takeInstant removes NOW and an instant in us from the end of an effect that depends on time, and makes the
// command run at that instant. It returns an error if the instant is not a number, or is beyond the engine's
// horizon.
func (c *Session) takeInstant(args [][]byte) ([][]byte, error) {
	n := len(args) - 2
	if n < 1 || !command.EqualFold(args[n], "NOW") {
		return args, nil
	}
	us, ok := numeral.ParseInt(args[n+1])
	if !ok {
		return nil, command.ErrNotInteger
	}
	return args[:n], c.tx.At(us)
}

// resolveEffect finds the command of an effect. Effects use the original name of a command, even if
// rename-command has renamed it.
func (c *Session) resolveEffect(args [][]byte) (*command.Spec, error) {
	c.svc.cutOwn(args)
	args = c.svc.withoutInstant(args)
	if s := c.last; s != nil && s.Plain() && command.EqualFold(args[0], s.Name) && s.ArityOK(args) {
		return s, nil
	}
	s, err := c.svc.table.ResolveOwn(args)
	if err != nil {
		s, err = c.resolveTimed(args, err)
	}
	if err == nil {
		c.last = s
	}
	return s, err
}

// resolveTimed resolves a refused effect that depends on time: the arity of its command does not count the
// instant at its end.
func (c *Session) resolveTimed(args [][]byte, refused error) (*command.Spec, error) {
	if n := len(args) - 2; n >= 1 && command.EqualFold(args[n], "NOW") {
		if s, err := c.svc.table.ResolveOwn(args[:n]); err == nil && s.Has(command.Timed) {
			return s, nil
		}
	}
	return nil, refused
}

// cutOwn removes engine.OwnPrefix from the name of a replayed request, unless it is part of a command's own
// name.
func (s *Service) cutOwn(args [][]byte) {
	if n := len(engine.OwnPrefix); len(args[0]) > n && string(args[0][:n]) == engine.OwnPrefix {
		if _, err := s.table.FindOwn(args); err != nil {
			args[0] = args[0][n:]
		}
	}
}

// withoutInstant returns a replayed request without NOW and the instant, which the arity of its
// command does not count.
func (s *Service) withoutInstant(args [][]byte) [][]byte {
	n := len(args) - 2
	if n < 1 || !command.EqualFold(args[n], "NOW") {
		return args
	}
	if spec, err := s.table.FindOwn(args); err != nil || !spec.Has(command.Timed) {
		return args
	}
	return args[:n]
}

// Replay runs effects in order: those of another engine's Drain, or of a log. Nothing expires meanwhile,
// however old the deadlines are, because the effects include the expirations. Memory limits, pauses and the
// users' rules do not apply. Replay returns the error of the first effect that was refused; an engine never
// writes such an effect.
func (s *Service) Replay(effects []engine.Effect) error {
	c := s.NewSession(nil)
	c.replay = true
	c.setUser(s.acl.Super())
	defer c.Closed(nil)
	for i, e := range effects {
		c.dbi = e.DB
		if v := c.Do(e.Args...); v.Kind == resp.KindError {
			return fmt.Errorf("effect %d of transaction %d was refused: %q in database %d: %s", i, e.Seq, e.Args, e.DB, v.Str)
		}
	}
	return nil
}
