// Package cli implements the program `ebb cli`: redis-cli's usage, flags and output for
// any server that speaks the Redis protocol.
//
//	Main ─ ParseOptions ─┬─ command ──── client.run ── printer     one command, -r times
//	                     ├─ repl ─────── client.run ── printer     lines of a terminal or file
//	                     │    └ lookup ── COMMAND DOCS             completion, hints, help
//	                     ├─ pipe                                   raw protocol from stdin
//	                     ├─ scan                                   all keys, one a line
//	                     ├─ bigkeys, hotkeys ── survey             all keys, with their sizes
//	                     ├─ eval ─────── command                   a script of a file
//	                     ├─ debug                                  the same, line by line
//	                     └─ latency, latencyDist, intrinsic, stat  sampling
//
// A client is one connection and the settings that it sends again after a reconnect:
// password, database, protocol. Its run sends a command, shows every reply the command has
// (one, or a stream for SUBSCRIBE and MONITOR), and follows the state the prompt shows.
//
// What goes to standard output is redis-cli 7.0's, byte for byte, so scripts that read it
// keep working; the messages on standard error and the interactive mode are ebb's own.
// Start reading at Main and client.run.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Env is the environment of the program. Besides it, Main uses only the network, files
// named by flags, and the history file.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	InTTY    bool                // In is a terminal: Main offers the line editor
	OutTTY   bool                // Out is a terminal: Main prints replies for people
	Getenv   func(string) string // nil: no environment
	Version  string              // what --version prints after "ebb cli"
}

// System returns the Env of the process.
func System(version string) Env {
	return Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: IsTerminal(os.Stdin), OutTTY: IsTerminal(os.Stdout),
		Getenv: os.Getenv, Version: version,
	}
}

// Main runs the program with the arguments after its name and returns the exit status. It
// returns when its work is done, when In ends, or soon after ctx has ended.
func Main(ctx context.Context, args []string, env Env) int {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	opt, err := ParseOptions(args, env.Getenv)
	if err != nil {
		fmt.Fprintln(env.Err, err)
		return 1
	}
	switch {
	case opt.Help:
		_, _ = io.WriteString(env.Out, usage)
		return 0
	case opt.Version:
		fmt.Fprintln(env.Out, "ebb cli", env.Version)
		return 0
	}
	if opt.AskPassword {
		if opt.Password, err = askPassword(env); err != nil {
			fmt.Fprintln(env.Err, "Could not read the password:", err)
			return 1
		}
		opt.HavePassword = true
	}
	if opt.PasswordInArgs && !opt.NoAuthWarning {
		fmt.Fprintln(env.Err, "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.")
	}
	c := newClient(ctx, opt, env)
	defer c.close()
	return c.main()
}

// main chooses the mode, connects, runs it, and returns the exit status.
func (c *client) main() int {
	if err := c.takeStdin(); err != nil {
		fmt.Fprintln(c.env.Err, err)
		return 1
	}
	if c.opt.Intrinsic > 0 {
		return c.intrinsic() // without a server
	}
	job := c.job()
	switch {
	case job != nil:
		if !c.connect() || c.refused {
			return 1 // a mode must not read or write as another user or in another database
		}
		return job()
	case len(c.opt.Command) > 0:
		if !c.connect() {
			return 1
		}
		return c.command() // also if AUTH or SELECT has failed, as redis-cli does
	}
	c.connect() // the prompt shows a failure
	return c.repl()
}

// job returns the mode that the flags choose, nil for a command and for the interactive
// mode.
func (c *client) job() func() int {
	switch {
	case c.opt.Latency || c.opt.LatencyHistory:
		return c.latency
	case c.opt.Stat:
		return c.stat
	case c.opt.LatencyDist:
		return c.latencyDist
	case c.opt.RDB != "" || c.opt.FunctionsRDB != "":
		return c.backup
	case c.opt.Pipe:
		return c.pipe
	case c.opt.Bigkeys || c.opt.Memkeys:
		return c.bigkeys
	case c.opt.Hotkeys:
		return c.hotkeys
	case c.opt.Scan:
		return c.scan
	case c.opt.Debug:
		return c.debug
	case c.opt.Eval != "":
		return c.eval
	}
	return nil
}

// command runs the command given as arguments as often as -r says.
func (c *client) command() int {
	args := c.opt.Command
	if isHelp(args) {
		c.help(args[1:])
		return 0
	}
	for n := c.opt.Repeat; n != 0; n-- {
		ok := c.run(args)
		if !ok {
			return 1
		}
		if n != 1 && !c.pause(c.opt.Interval) {
			return 1
		}
	}
	return 0
}

// takeStdin puts standard input into the command, at the position that -x or -X gives.
func (c *client) takeStdin() error {
	if len(c.opt.Command) == 0 || !c.opt.LastFromStdin && c.opt.TagFromStdin == "" {
		return nil
	}
	data, err := io.ReadAll(c.env.In)
	if err != nil {
		return fmt.Errorf("reading standard input: %w", err)
	}
	if c.opt.LastFromStdin {
		c.opt.Command = append(c.opt.Command, string(data))
		return nil
	}
	for i, a := range c.opt.Command {
		if a == c.opt.TagFromStdin {
			c.opt.Command[i] = string(data)
			return nil
		}
	}
	return errors.New("Using -X option but stdin tag not match.")
}

// askPassword reads a line; on a terminal the caller's typing is not hidden
// here but by the line editor.
func askPassword(env Env) (string, error) {
	if env.InTTY {
		return readPassword()
	}
	line, err := bufio.NewReader(env.In).ReadString('\n')
	if err == io.EOF && line != "" {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

// historyFile returns the path of the history of typed lines, "" for none.
func historyFile(getenv func(string) string) string {
	for _, name := range []string{"EBBCLI_HISTFILE", "REDISCLI_HISTFILE", "VALKEYCLI_HISTFILE"} {
		switch path := getenv(name); path {
		case "":
			continue
		case "/dev/null":
			return ""
		default:
			return path
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".ebbcli_history")
}
