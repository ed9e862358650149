package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ebbdb/ebb/internal/system"
	"github.com/ebbdb/ebb/resp"
)

// client is a connection, which may be closed, and the settings with which a new
// connection begins. One goroutine uses it.
type client struct {
	ctx context.Context
	opt Options
	env Env
	out printer

	conn    *conn
	db      int  // selected; the prompt shows it
	tx      bool // between MULTI and EXEC
	hints   bool // the line editor shows hints
	talk    bool // reads lines, and continues after errors that end a single command
	refused bool // the server did not take the password, the database or the protocol
	warned  bool // the message about starting a server was printed
	docs    *lookup

	debugging bool // a script runs under the debugger, which gets the lines
}

func newClient(ctx context.Context, opt Options, env Env) *client {
	f := opt.Format
	if f == FormatAuto {
		f = FormatRaw
		if env.OutTTY {
			f = FormatTTY
		}
	}
	pushes := env.OutTTY
	if opt.ShowPushes != nil {
		pushes = *opt.ShowPushes
	}
	c := &client{ctx: ctx, opt: opt, env: env, db: opt.DB, hints: true}
	c.out = printer{w: env.Out, format: f, bulk: opt.BulkDelimiter, end: opt.EndDelimiter, pushes: pushes}
	return c
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
	c.docs.stop()
}

// connect replaces the connection by a new one that has authenticated, selected the
// database and agreed on the protocol. It prints errors to standard error, and returns
// false only if it cannot connect.
func (c *client) connect() bool {
	c.drop()
	c.refused = false
	cn, err := dial(c.ctx, &c.opt)
	if err != nil {
		fmt.Fprintf(c.env.Err, "Could not connect to Redis at %s: %s\n", c.opt.addr(), describe(err))
		if errors.Is(err, syscall.ECONNREFUSED) && c.opt.Socket == "" && system.LoopbackHost(c.opt.Host) && !c.warned {
			c.warned = true
			fmt.Fprintf(c.env.Err, "No server listens there. To start a server: ebb serve%s\n", portFlag(c.opt.Port))
		}
		return false
	}
	for _, step := range greeting(&c.opt, c.db) {
		if _, err := cn.do(step.args...); err != nil {
			fmt.Fprintf(c.env.Err, "%s failed: %s\n", step.name, describe(err))
			if _, reply := err.(resp.ReplyError); !reply {
				cn.close()
				return false
			}
			c.refused = true
			if step.name != "AUTH" && step.name != "HELLO 3" {
				c.db = 0
			}
		}
	}
	c.conn = cn
	return true
}

// drop closes the connection; its transaction is lost with it.
func (c *client) drop() {
	if c.conn != nil {
		c.conn.close()
	}
	c.conn, c.tx = nil, false
}

// step is a command for a new connection, and its name in messages.
type step struct {
	name string
	args []string
}

// greeting returns the handshake: the first commands of a new connection.
func greeting(o *Options, db int) (steps []step) {
	if o.HavePassword {
		args := []string{"AUTH", o.Password}
		if o.User != "" {
			args = []string{"AUTH", o.User, o.Password}
		}
		steps = append(steps, step{"AUTH", args})
	}
	if db != 0 {
		n := strconv.Itoa(db)
		steps = append(steps, step{"SELECT " + n, []string{"SELECT", n}})
	}
	if o.Protocol == 3 {
		steps = append(steps, step{"HELLO 3", []string{"HELLO", "3"}})
	}
	return steps
}

// run sends a command and prints its reply. For SUBSCRIBE, MONITOR and similar commands it
// prints all messages, until the user interrupts or the connection ends. It returns false
// if the program should exit with an error.
func (c *client) run(args []string) (ok bool) {
	if !c.ready() {
		return false
	}
	ctx, stop := c.interruptible()
	defer stop()
	release := context.AfterFunc(ctx, c.conn.close)
	defer func() { release() }()

	v, err := c.exchange(args)
	for hop := 0; err == nil && hop < maxRedirects; hop++ {
		r, ok := c.redirection(v)
		if !ok {
			break
		}
		release()
		if !c.redirect(r) {
			return false
		}
		release = context.AfterFunc(ctx, c.conn.close)
		if r.ask {
			_, err = c.conn.do("ASKING")
		}
		if err == nil {
			v, err = c.exchange(args)
		}
	}
	if err != nil {
		return c.failed(ctx, args, err)
	}
	c.follow(args, v)
	if c.opt.ErrorStatus && !c.talk && v.Kind == resp.KindError {
		fmt.Fprintln(c.env.Err, v.Str)
		return false
	}
	return c.show(ctx, args, v)
}

// exchange sends a command and reads its reply, or the first of many.
func (c *client) exchange(args []string) (resp.Value, error) {
	if err := c.conn.send(args...); err != nil {
		return resp.Value{}, err
	}
	return c.reply()
}

// show prints a reply, and the messages after it if the command is a stream.
func (c *client) show(ctx context.Context, args []string, v resp.Value) (ok bool) {
	kind := streams(args)
	if c.tx {
		kind = notStream
	}
	if kind == subscription && c.out.format != FormatRaw {
		fmt.Fprintln(c.env.Out, "Reading messages... (press Ctrl-C to quit)")
	}
	if kind != notStream && v.Kind != resp.KindError {
		return c.stream(ctx, v)
	}
	c.out.reply(v, plainText(args))
	return true
}

// stream prints v and everything after it, until the connection ends. The connection
// can no longer be used for commands.
func (c *client) stream(ctx context.Context, v resp.Value) (ok bool) {
	for {
		c.out.reply(v, false)
		var err error
		if v, err = c.conn.recv(); err != nil {
			return c.failed(ctx, nil, err)
		}
	}
}

// reply reads the next reply; pushes before it are shown if they are wanted.
// In RESP3 the answer to SUBSCRIBE is a push too, and is the reply.
func (c *client) reply() (resp.Value, error) {
	for {
		v, err := c.conn.recv()
		if err != nil || v.Kind != resp.KindPush || isConfirmation(v) {
			return v, err
		}
		c.out.push(v)
	}
}

// isConfirmation reports whether a push is the reply to SUBSCRIBE or a similar command.
func isConfirmation(v resp.Value) bool {
	if len(v.Elems) != 3 {
		return false
	}
	switch v.Elems[0].Str {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return true
	}
	return false
}

// ready makes sure that the connection is open. It replaces a closed one without a
// message, unless a transaction was lost with it.
func (c *client) ready() bool {
	if c.conn != nil && c.talk && c.env.InTTY && c.conn.gone() {
		lost := c.tx
		c.drop()
		if lost {
			fmt.Fprintln(c.env.Err, "Error: Server closed the connection. The transaction is discarded.")
			return false
		}
	}
	return c.conn != nil || c.connect()
}

// failed handles an error of the connection during a command.
func (c *client) failed(ctx context.Context, args []string, err error) (ok bool) {
	c.drop()
	switch {
	case ctx.Err() != nil && c.talk && c.ctx.Err() == nil: // Ctrl-C: back to the prompt
		fmt.Fprintln(c.env.Out)
		return c.connect()
	case ctx.Err() != nil:
		return false
	case errors.Is(err, io.EOF) && len(args) > 0 && strings.EqualFold(args[0], "shutdown"):
		return true
	}
	fmt.Fprintln(c.env.Err, "Error:", describe(err))
	return false
}

// interruptible returns a context that Ctrl-C ends too, if that must lead back to the
// prompt. In other modes the signal ends the process as usual.
func (c *client) interruptible() (context.Context, func()) {
	if !c.talk || !c.env.InTTY {
		return c.ctx, func() {}
	}
	return signal.NotifyContext(c.ctx, os.Interrupt)
}

// follow updates the state that the prompt shows, and the settings for a new connection.
func (c *client) follow(args []string, v resp.Value) {
	if v.Kind == resp.KindError {
		if strings.EqualFold(args[0], "exec") && strings.HasPrefix(v.Str, "EXECABORT") {
			c.tx = false
		}
		return
	}
	switch strings.ToLower(args[0]) {
	case "multi":
		c.tx = true
	case "exec", "discard":
		c.tx = false
	case "select":
		if n, err := strconv.Atoi(args[len(args)-1]); err == nil && !c.tx {
			c.db = n
		}
	case "auth":
		c.opt.HavePassword, c.opt.User, c.opt.Password = true, "", args[len(args)-1]
		if len(args) == 3 {
			c.opt.User = args[1]
		}
	case "hello":
		if len(args) > 1 {
			c.opt.Protocol, _ = strconv.Atoi(args[1])
		}
	case "reset":
		c.tx, c.db, c.opt.Protocol = false, 0, 2
	}
}

// pause waits between repetitions and returns false if the program must stop.
func (c *client) pause(d time.Duration) bool { return pause(c.ctx, d) }

// pause waits, and returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type streamKind uint8

const (
	notStream streamKind = iota
	subscription
	feed
)

// streams reports whether a command's replies never end.
func streams(args []string) streamKind {
	switch strings.ToLower(args[0]) {
	case "subscribe", "psubscribe", "ssubscribe":
		return subscription
	case "monitor", "sync", "psync":
		return feed
	}
	return notStream
}

// plainText reports whether a command's reply is text for people, shown as it
// is in every format.
func plainText(args []string) bool {
	sub := ""
	if len(args) > 1 {
		sub = strings.ToLower(args[1])
	}
	switch strings.ToLower(args[0]) {
	case "info", "lolwut":
		return true
	case "debug":
		return sub == "htstats" || sub == "htstats-key" || sub == "client-eviction"
	case "memory":
		return sub == "malloc-stats" || sub == "doctor"
	case "cluster":
		return len(args) == 2 && (sub == "nodes" || sub == "info")
	case "client":
		return len(args) >= 2 && (sub == "list" || sub == "info")
	case "latency":
		return sub == "graph" && len(args) == 3 || sub == "doctor" && len(args) == 2
	}
	return false
}

func isHelp(args []string) bool {
	return strings.EqualFold(args[0], "help") || args[0] == "?"
}

func portFlag(port int) string {
	if port == 6379 {
		return ""
	}
	return " --port " + strconv.Itoa(port)
}
