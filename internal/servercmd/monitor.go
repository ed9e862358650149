package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var specMonitor = command.Spec{
	Name: "monitor", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1); from then on every command costs a line more",
	Summary: "Shows every command that the server runs, until RESET or the end of the connection.",
	Flags:   adminFlags,
	Client:  command.Stateful,
	Replies: "OK, and then a line for each command: time, database, address, arguments. " +
		"The lines leave out administrative commands and passwords.",
	Examples: `
2> MONITOR
OK
> SET k "a b"
OK
2< $_ [0 $_] "SET" "k" "a b"
`,
	Run: runMonitor,
}

const errNoMonitor = command.ReplyError("ERR MONITOR isn't allowed for DENY BLOCKING client")

func runMonitor(c *command.Ctx) error {
	s := session.Of(c)
	if s.Conn() == nil || s.InMulti() {
		return errNoMonitor
	}
	if s.StartMonitor() { // otherwise there is no reply, as in Redis
		c.Out.OK()
	}
	return nil
}
