package conn

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/internal/routing"
)

// commandName returns the first argument, for messages.
func commandName(args []any) string {
	if len(args) == 0 {
		return "an empty command"
	}
	s, err := drivers.ArgText(args[0])
	if err != nil || len(s) > 32 {
		return "a command"
	}
	return s
}

// checkCommand refuses commands that must not run on a borrowed connection.
func checkCommand(args []any) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: there is no command", ErrArgument)
	}
	name, err := drivers.ArgText(args[0])
	if err != nil {
		return err
	}
	c, sub := routing.Find(name, ""), ""
	if c.Has(routing.Container) && len(args) > 1 {
		if sub, err = drivers.ArgText(args[1]); err != nil {
			return err
		}
		c = routing.Find(name, sub)
	}
	return checkState(c, name, sub)
}

// checkState refuses a command that changes its connection. The error names the alternative.
func checkState(c *routing.Command, name, sub string) error {
	if !c.Has(routing.Stateful) {
		return nil
	}
	switch c.Name {
	case "multi", "exec", "discard":
		return fmt.Errorf("%w: %s: use Conn.Tx", ErrStateful, name)
	case "watch", "unwatch":
		return fmt.Errorf("%w: %s: use Conn.Watch", ErrStateful, name)
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "monitor":
		return fmt.Errorf("%w: %s: use Conn.Subscribe", ErrStateful, name)
	}
	if strings.Contains(c.Name, "|") {
		return fmt.Errorf("%w: %s %s", ErrStateful, strings.ToUpper(name), sub)
	}
	return fmt.Errorf("%w: %s: set the database, the user and the protocol in the URL of Open", ErrStateful, name)
}
