package servercmd

import (
	"errors"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/session"
)

var persistSpecs = []*command.Spec{&specBgrewriteaof, &specBgsave, &specLastsave, &specSave}

// persistError returns the error of a job as a reply.
func persistError(err error) error { return command.ReplyError(cleantext.Reply("ERR " + err.Error())) }

var specSave = command.Spec{
	Name: "save", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(N) where N is the total number of keys in all databases",
	Summary: "Saves the data of this instant to the RDB file, and replies when it is on disk. The server serves other clients meanwhile.",
	Flags:   command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti | command.Slow,
	Errors: []string{"ERR Background save already in progress",
		"ERR there is no directory for files: start with --dir: the server keeps data in memory alone"},
	Replies: "OK. An error says why the file could not be written; the old file is then unchanged.",
	Examples: `
> SAVE
(error) ERR there is no directory for files: start with --dir
`,
	Run: runSave,
}

func runSave(c *command.Ctx) error {
	if err := session.ServiceOf(c).Keeper().Save(c.Host.Context()); err != nil {
		return persistError(err)
	}
	c.Out.OK()
	return nil
}

var specBgsave = command.Spec{
	Name: "bgsave", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Saves the data of this instant to the RDB file, in the background. There is no fork.",
	Flags:   command.Admin | command.NoScript | command.NoAsyncLoading,
	Args:    []command.Arg{command.Opt(command.Token("SCHEDULE")).Since("3.2.2")},
	History: []command.Change{{Since: "3.2.2", Text: "Added the `SCHEDULE` option."}},
	Errors: []string{"ERR Background save already in progress",
		"ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a " +
			"BGSAVE whenever possible.: the append-only files are being rewritten"},
	Replies: "A status: the save has started, or is scheduled. LASTSAVE and INFO persistence report its end.",
	Examples: `
> BGSAVE
(error) ERR there is no directory for files: start with --dir
`,
	Run: runBgsave,
}

func runBgsave(c *command.Ctx) error {
	schedule := len(c.Args) == 2 && command.EqualFold(c.Args[1], "SCHEDULE")
	if len(c.Args) > 1 && !schedule {
		return command.ErrSyntax
	}

	scheduled, err := session.ServiceOf(c).Keeper().BackgroundSave(schedule)

	return begun(c, "Background saving", scheduled, err)
}

// begun replies to a command that begins a job, or schedules it.
func begun(c *command.Ctx, job string, scheduled bool, err error) error {
	switch {
	case err != nil:
		return persistError(err)
	case scheduled:
		c.Out.Simple(job + " scheduled")
	default:
		c.Out.Simple(job + " started")
	}
	return nil
}

var specBgrewriteaof = command.Spec{
	Name: "bgrewriteaof", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Rewrites the append-only files in the background: a base of the data of this instant, and the effects from it on.",
	Flags:   command.Admin | command.NoScript | command.NoAsyncLoading,
	Errors:  []string{"ERR Background append only file rewriting already in progress"},
	Replies: "A status: the rewrite has started, or is scheduled to start after the running save.",
	Examples: `
> BGREWRITEAOF
(error) ERR there is no directory for files: start with --dir
`,
	Run: runBgrewriteaof,
}

func runBgrewriteaof(c *command.Ctx) error {
	scheduled, err := session.ServiceOf(c).Keeper().RewriteAOF()

	return begun(c, "Background append only file rewriting", scheduled, err)
}

var specLastsave = command.Spec{
	Name: "lastsave", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Returns the time of the last save, in seconds since 1970.",
	Flags:      command.Loading | command.Stale | command.Fast | command.Inert,
	Categories: command.CatAdmin | command.CatDangerous,
	Tips:       []string{"nondeterministic_output"},
	Replies:    "The time; that of the server's start if nothing was saved since.",
	Examples: `
> LASTSAVE
(integer) 1700000000
`,
	Run: runLastsave,
}

func runLastsave(c *command.Ctx) error {
	c.Out.Int(session.ServiceOf(c).Keeper().LastSave())
	return nil
}

var specDebugReload = command.Spec{
	Name: "debug|reload", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(N) where N is the total number of keys",
	Summary: "Saves the data, drops it, and loads it again.",
	Flags:   adminFlags | command.Slow | command.NoMulti,
	Args: []command.Arg{command.Opt(command.Repeat(command.OneOf("option", command.Token("MERGE"), command.Token("NOFLUSH"),
		command.Token("NOSAVE"))))},
	Replies: "OK. NOSAVE loads the existing file; NOFLUSH keeps the existing data as well, and with MERGE the file's " +
		"keys replace it. Without a directory the data goes through memory.",
	Examples: `
> SET k v PX 1000
OK
> DEBUG RELOAD
OK
> PTTL k
(integer) 1000
`,
	Run: debugging(runDebugReload),
}

func runDebugReload(c *command.Ctx) error {
	var o durable.ReloadOptions
	for _, a := range c.Args[2:] {
		switch {
		case command.EqualFold(a, "MERGE"):
			o.Merge, o.NoFlush = true, true
		case command.EqualFold(a, "NOFLUSH"):
			o.NoFlush = true
		case command.EqualFold(a, "NOSAVE"):
			o.NoSave = true
		default:
			return command.ReplyError("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
		}
	}

	if err := session.ServiceOf(c).Keeper().Reload(c.Host.Context(), o); err != nil {
		return reloadError(err)
	}

	c.Out.OK()
	return nil
}

var specDebugLoadaof = command.Spec{
	Name: "debug|loadaof", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(N) where N is the length of the append-only files",
	Summary: "Drops the data and loads the append-only files.",
	Flags:   adminFlags | command.Slow | command.NoMulti,
	Examples: `
> DEBUG LOADAOF
(error) ERR there is no directory for files: start with --dir
`,
	Run: debugging(runDebugLoadaof),
}

func runDebugLoadaof(c *command.Ctx) error {
	if err := session.ServiceOf(c).Keeper().LoadAOF(c.Host.Context()); err != nil {
		return reloadError(err)
	}
	c.Out.OK()
	return nil
}

// reloadError returns the error reply about files that could not be loaded.
func reloadError(err error) error {
	if errors.Is(err, durable.ErrNoDirectory) {
		return persistError(err)
	}
	return command.ReplyError(cleantext.Reply("ERR Error trying to load the data, check server logs: " + err.Error()))
}
