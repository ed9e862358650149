package sentinel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/wire"
)

// Errors of Options.Failover.
var (
	// ErrNoReplica means that no replica can become the master.
	ErrNoReplica = errors.New("no suitable replica to promote")
	// ErrUnderWay means that a failover is under way.
	ErrUnderWay = errors.New("failover already in progress")
)

// maxChannels is the largest number of channels and patterns of one client.
const maxChannels = 64

// client is the state of a connection. One goroutine runs its commands; others publish messages to it, under conn.mu.
type client struct {
	opt      *Options
	w        wire.Writer
	id       int64
	addr     string
	name     string
	user     User // the user that has logged in; nil: none
	channels []string
	patterns []string
	quit     bool
	// subscribers is the number of clients that have subscribed.
	subscribers *atomic.Int64
	later       func(context.Context) error // the slow part of a command, which runs without the lock; answer writes its result
}

// run runs a command and writes the reply. args has at least one word.
func (c *client) run(args []string) {
	name, words := strings.ToLower(args[0]), args[1:]
	switch {
	case name != "auth" && name != "hello" && name != "quit" && c.as() == nil:
		c.fail(command.ErrNoAuth)
		return
	case c.w.Proto != 3 && c.subscribed() && !strings.Contains(" subscribe unsubscribe psubscribe punsubscribe ping quit ", " "+name+" "):
		c.fail(command.NotInSubscription(name))
		return
	}
	switch name {
	case "ping":
		c.ping(words)
	case "auth":
		c.auth(words)
	case "hello":
		c.hello(words)
	case "client":
		c.named(words)
	case "role":
		c.w.Array(2)
		c.w.BulkString("sentinel")
		c.w.Array(1)
		c.w.BulkString(c.opt.View().Name)
	case "info":
		c.w.Verbatim("txt", c.info(words))
	case "sentinel":
		c.sentinel(words)
	case "subscribe", "psubscribe":
		c.subscribe(name, words)
	case "unsubscribe", "punsubscribe":
		c.unsubscribe(name, words)
	case "quit":
		c.w.OK()
		c.quit = true
	default:
		c.unknown(args)
	}
}

// fail replies with an error.
func (c *client) fail(err error) { c.w.Error(err.Error()) }

func (c *client) unknown(args []string) {
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	c.fail(command.UnknownCommand(words))
}

func (c *client) arity(name string) { c.fail(command.WrongArity(&command.Spec{Name: name})) }

func (c *client) ping(words []string) {
	switch {
	case len(words) > 1:
		c.arity("ping")
	case c.subscribed() && c.w.Proto != 3:
		c.w.Array(2)
		c.w.BulkString("pong")
		c.w.BulkString(strings.Join(words, ""))
	case len(words) == 1:
		c.w.BulkString(words[0])
	default:
		c.w.Simple("PONG")
	}
}

// login logs the client in. After a failure the client is logged out.
func (c *client) login(user, password string) bool {
	c.user = c.opt.Access.Login(user, password, c.addr)
	return c.user != nil
}

func (c *client) auth(words []string) {
	guest := c.opt.Access.Guest()
	switch {
	case len(words) == 0:
		c.arity("auth")
	case len(words) > 2:
		c.fail(command.ErrSyntax)
	case len(words) == 1 && guest != nil && guest.Refusal("failover") == "":
		c.w.Error("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	case !c.login(append([]string{"default"}, words...)[len(words)-1], words[len(words)-1]):
		c.fail(command.ErrWrongPass)
	default:
		c.w.OK()
	}
}

func (c *client) hello(words []string) {
	proto := c.w.Proto
	if len(words) > 0 {
		n, err := strconv.Atoi(words[0])
		switch {
		case err != nil:
			c.w.Error("ERR Protocol version is not an integer or out of range")
			return
		case n != 2 && n != 3:
			c.w.Error("NOPROTO unsupported protocol version")
			return
		}
		proto, words = n, words[1:]
	}
	for len(words) > 0 {
		switch option := strings.ToLower(words[0]); {
		case option == "auth" && len(words) > 2:
			if !c.login(words[1], words[2]) {
				c.fail(command.ErrWrongPass)
				return
			}
			words = words[3:]
		case option == "setname" && len(words) > 1:
			c.name, words = words[1], words[2:]
		default:
			c.w.Error("ERR Syntax error in HELLO option '" + words[0] + "'")
			return
		}
	}
	if c.as() == nil {
		c.w.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option " +
			"can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.w.Proto = proto
	c.w.Map(6)
	c.pair("server", "redis")
	c.pair("version", c.opt.Version)
	c.w.BulkString("proto")
	c.w.Int(int64(max(proto, 2)))
	c.w.BulkString("id")
	c.w.Int(c.id)
	c.pair("mode", "sentinel")
	c.w.BulkString("modules")
	c.w.Array(0)
}

func (c *client) pair(name, value string) {
	c.w.BulkString(name)
	c.w.BulkString(value)
}

// named runs CLIENT.
func (c *client) named(words []string) {
	if len(words) == 0 {
		c.arity("client")
		return
	}
	switch sub := strings.ToLower(words[0]); {
	case sub == "setname" && len(words) == 2:
		c.name = words[1]
		c.w.OK()
	case sub == "setinfo" && len(words) == 3, sub == "tracking" && len(words) > 1:
		c.w.OK() // rueidis turns tracking on for each connection; there are no keys here that could change
	case sub == "getname" && len(words) == 1:
		if c.name == "" {
			c.w.Null()
			return
		}
		c.w.BulkString(c.name)
	case sub == "id" && len(words) == 1:
		c.w.Int(c.id)
	case strings.Contains(" setname setinfo getname id tracking ", " "+sub+" "):
		c.arity("client|" + sub)
	default:
		c.w.Error("ERR unknown subcommand '" + words[0] + "'. Try CLIENT HELP.")
	}
}

// info returns the requested sections of INFO.
func (c *client) info(words []string) string {
	wants := func(section string) bool {
		if len(words) == 0 {
			return true
		}
		for _, w := range words {
			if w = strings.ToLower(w); w == section || w == "all" || w == "everything" || w == "default" {
				return true
			}
		}
		return false
	}
	v, b := c.opt.View(), new(strings.Builder)
	if wants("server") {
		fmt.Fprintf(b, "# Server\r\nredis_version:%s\r\nredis_mode:sentinel\r\nrun_id:%s\r\n", c.opt.Version, v.ID)
	}
	if wants("sentinel") {
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		status := "ok"
		if v.Master.Down || v.Master.Host == "" {
			status = "sdown"
		}
		fmt.Fprintf(b, "# Sentinel\r\nsentinel_masters:1\r\nsentinel_tilt:0\r\nsentinel_tilt_since_seconds:-1\r\nsentinel_running_scripts:0\r\n"+
			"sentinel_scripts_queue_length:0\r\nsentinel_simulate_failure_flags:0\r\n"+
			"master0:name=%s,status=%s,address=%s,slaves=%d,sentinels=%d\r\n",
			v.Name, status, v.Master.address(), len(v.Replicas), len(v.Others)+1)
	}
	return b.String()
}

// The channels of a client.

func (c *client) subscribed() bool { return len(c.channels)+len(c.patterns) > 0 }

// list returns the channels or the patterns of the client: the patterns if the command begins with "p".
func (c *client) list(command string) *[]string {
	if strings.HasPrefix(command, "p") {
		return &c.patterns
	}
	return &c.channels
}

func (c *client) subscribe(command string, names []string) {
	if len(names) == 0 {
		c.arity(command)
		return
	}
	if !c.subscribed() && c.subscribers.Add(1) > maxSubscribers {
		c.subscribers.Add(-1)
		c.w.Error(fmt.Sprintf("ERR at most %d clients may have channels and patterns here", maxSubscribers))
		return
	}
	list := c.list(command)
	for _, name := range names {
		if !contains(*list, name) {
			if len(c.channels)+len(c.patterns) >= maxChannels {
				c.w.Error(fmt.Sprintf("ERR a client may have at most %d channels and patterns here", maxChannels))
				return
			}
			*list = append(*list, name)
		}
		c.confirm(command, name)
	}
}

func (c *client) unsubscribe(command string, names []string) {
	if c.subscribed() {
		defer c.unsubscribed()
	}
	list := c.list(command)
	if len(names) == 0 {
		names = append(names, *list...)
	}
	if len(names) == 0 {
		c.w.Push(3)
		c.w.BulkString(command)
		c.w.Null()
		c.w.Int(int64(len(c.channels) + len(c.patterns)))
	}
	for _, name := range names {
		kept := (*list)[:0]
		for _, have := range *list {
			if have != name {
				kept = append(kept, have)
			}
		}
		*list = kept
		c.confirm(command, name)
	}
}

// unsubscribed decrements subscribers if the client has left its last channel or pattern.
func (c *client) unsubscribed() {
	if !c.subscribed() {
		c.subscribers.Add(-1)
	}
}

func (c *client) confirm(command, name string) {
	c.w.Push(3)
	c.w.BulkString(command)
	c.w.BulkString(name)
	c.w.Int(int64(len(c.channels) + len(c.patterns)))
}

// publish appends a message once for the channel and once for each pattern of the client that matches.
func (c *client) publish(e event) {
	if contains(c.channels, e.channel) {
		c.w.Push(3)
		for _, s := range []string{"message", e.channel, e.text} {
			c.w.BulkString(s)
		}
	}
	for _, p := range c.patterns {
		if glob.Match(p, e.channel) {
			c.w.Push(4)
			for _, s := range []string{"pmessage", p, e.channel, e.text} {
				c.w.BulkString(s)
			}
		}
	}
}

func contains(all []string, s string) bool {
	for _, have := range all {
		if have == s {
			return true
		}
	}
	return false
}
