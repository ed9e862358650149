package acl

import (
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
)

// Denial is the reason for which a request is refused. If there are several, the reply
// names the greatest one.
type Denial uint8

const (
	Allowed Denial = iota
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel

	Denials // the number of reasons
)

// denials are the words about a reason: in ACL LOG, in the reply to a request, and in the
// reply to EXEC. They are Redis's.
var denials = [Denials]struct{ word, reply, exec string }{
	DeniedCommand: {"command", "", "no permission to execute the command or subcommand"},
	DeniedKey:     {"key", "NOPERM No permissions to access a key", "no permission to touch the specified keys"},
	DeniedAuth:    {"auth", "", "no permission"},
	DeniedChannel: {"channel", "NOPERM No permissions to access a channel", "no permission to access one of the channels used as arguments"},
}

// String returns the reason's word in ACL LOG.
func (d Denial) String() string { return denials[d].word }

// Reply returns the error reply to a request that is refused for a key or a channel.
func (d Denial) Reply() string { return denials[d].reply }

// Exec returns the reason in the error reply of EXEC.
func (d Denial) Exec() string { return denials[d].exec }

// MayNotRun returns the message that a user may not run a command. The message is one line, whatever the
// user's name contains.
func MayNotRun(user string, spec *command.Spec) string {
	return "User " + cleantext.Reply(user) + " has no permissions to run the '" + spec.Name + "' command"
}
