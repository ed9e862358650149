package servercmd

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/session"
)

var specShutdown = command.Spec{
	Name: "shutdown", Group: command.GroupServer, Since: "1.0.0",
	Complexity: "O(N) when saving, where N is the total number of keys in all databases",
	Summary:    "Saves the data if configured, and ends the server.",
	Flags:      adminFlags | command.NoMulti | command.AllowBusy | command.Slow,
	Args: []command.Arg{command.Opt(command.OneOf("nosave_save", command.Token("NOSAVE"), command.Token("SAVE"))),
		command.Opt(command.Token("NOW")).Since("7.0.0"), command.Opt(command.Token("FORCE")).Since("7.0.0"),
		command.Opt(command.Token("ABORT")).Since("7.0.0")},
	History: []command.Change{{Since: "7.0.0", Text: "Added the `NOW`, `FORCE` and `ABORT` modifiers."}},
	Replies: "None: the connection is closed when the server has ended. The server saves to the RDB file if there are " +
		"save points, or with SAVE. If that fails, the reply is an error, and the server goes on; with FORCE it ends all the same. " +
		"Without NOW, replicas that lag have shutdown-timeout seconds to catch up; ABORT ends that wait, and the shutdown.",
	Examples: `
> SHUTDOWN ABORT
(error) ERR No shutdown in progress.
> SHUTDOWN SAVE NOSAVE
(error) ERR syntax error
> SHUTDOWN SAVE
(error) ERR Errors trying to SHUTDOWN. Check logs.
`,
	Run: runShutdown,
}

const errShutdown = command.ReplyError("ERR Errors trying to SHUTDOWN. Check logs.")

func runShutdown(c *command.Ctx) error {
	o, abort, err := parseShutdown(c.Args[1:])
	s := session.ServiceOf(c)
	switch {
	case err != nil:
		return err
	case abort && s.AbortShutdown():
		c.Out.OK()
		return nil
	case abort:
		return command.ReplyError("ERR No shutdown in progress.")
	case s.Shutdown() == nil:
		s.Log.Warn("SHUTDOWN refused: the program that runs this server does not allow it")
		return errShutdown
	}

	s.Log.Info("SHUTDOWN asked for by a client", "id", session.Of(c).ID())
	if err := s.PrepareShutdown(c.Host.Context(), o); err != nil {
		s.Log.Error("SHUTDOWN failed; the server keeps running", "err", err)
		return errShutdown
	}

	s.Shutdown()()
	session.Of(c).CloseAfterReply()
	return nil
}

func parseShutdown(args [][]byte) (o session.ShutdownOptions, abort bool, err error) {
	for _, a := range args {
		switch {
		case command.EqualFold(a, "NOSAVE") && o.Mode != durable.ShutdownSave:
			o.Mode = durable.ShutdownNoSave
		case command.EqualFold(a, "SAVE") && o.Mode != durable.ShutdownNoSave:
			o.Mode = durable.ShutdownSave
		case command.EqualFold(a, "NOW"):
			o.Now = true
		case command.EqualFold(a, "FORCE"):
			o.Force = true
		case command.EqualFold(a, "ABORT"):
			abort = true
		default:
			return o, abort, command.ErrSyntax
		}
	}
	if abort && o != (session.ShutdownOptions{}) {
		return o, abort, command.ErrSyntax
	}
	return o, abort, nil
}
