package command

var specShutdown = Spec{
	Name: "shutdown", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Ends the server.",
	Flags:   adminFlags | NoMulti | AllowBusy,
	Args: []Arg{Opt(OneOf("nosave_save", Token("NOSAVE"), Token("SAVE"))),
		Opt(Token("NOW")).Since("7.0.0"), Opt(Token("FORCE")).Since("7.0.0"), Opt(Token("ABORT")).Since("7.0.0")},
	History: []Change{{"7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers."}},
	Replies: "None: the connection is closed when the server has ended. An error if it cannot: SAVE needs FORCE, since nothing is saved.",
	Examples: "> SHUTDOWN ABORT\n(error) ERR No shutdown in progress.\n> SHUTDOWN SAVE NOSAVE\n(error) ERR syntax error\n" +
		"> SHUTDOWN SAVE\n(error) ERR Errors trying to SHUTDOWN. Check logs.\n",
	Run: runShutdown,
}

const errShutdown = ReplyError("ERR Errors trying to SHUTDOWN. Check logs.")

func runShutdown(c *Ctx) error {
	var save, nosave, force, abort, other bool
	for _, a := range c.Args[1:] {
		switch {
		case EqualFold(a, "NOSAVE"):
			nosave = true
		case EqualFold(a, "SAVE"):
			save = true
		case EqualFold(a, "NOW"):
			other = true
		case EqualFold(a, "FORCE"):
			force = true
		case EqualFold(a, "ABORT"):
			abort = true
		default:
			return ErrSyntax
		}
	}
	if save && nosave || abort && (save || nosave || force || other) {
		return ErrSyntax
	}

	s := c.Service
	switch {
	case abort:
		return ReplyError("ERR No shutdown in progress.")
	case s.opts.Shutdown == nil:
		s.Log.Warn("SHUTDOWN refused: the program that runs this server does not allow it")
		return errShutdown
	case save && !force:
		s.Log.Warn("SHUTDOWN SAVE refused: data is kept in memory and cannot be saved; SHUTDOWN NOSAVE ends the server without it")
		return errShutdown
	}
	s.Log.Info("SHUTDOWN asked for by a client", "id", c.Session.id)
	s.beside.Go(func() { s.opts.Shutdown(!save) })
	return nil
}
