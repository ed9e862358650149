package servercmd

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

var specACL = command.Spec{
	Name: "acl", Group: command.GroupServer, Since: "6.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about users and their permissions.",
	Sub: []*command.Spec{&specACLCat, &specACLDeluser, &specACLDryrun, &specACLGenpass, &specACLGetuser, &specACLHelp, &specACLList,
		&specACLLoad, &specACLLog, &specACLSave, &specACLSetuser, &specACLUsers, &specACLWhoami},
}

var specACLHelp = aclHelp()

func aclHelp() command.Spec {
	s := command.HelpSpec("acl", command.GroupServer, 0)
	s.Since = "6.0.0"
	return s
}

// perUser is the complexity of commands that visit every user.
const perUser = "O(N). Where N is the number of configured users."

// everyNode holds the tips of commands that a cluster client sends to all nodes. Such a command succeeds only
// if it has succeeded on every node.
var everyNode = []string{"request_policy:all_nodes", "response_policy:all_succeeded"}

var specACLWhoami = command.Spec{
	Name: "acl|whoami", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(1)",
	Summary: "Returns the name of the connection's user.",
	Flags:   ownFlags | command.Inert,
	Examples: `
> ACL WHOAMI
"default"
> ACL SETUSER ann on >secret +acl|whoami
OK
> AUTH ann secret
OK
> ACL WHOAMI
"ann"
`,
	Run: runACLWhoami,
}

func runACLWhoami(c *command.Ctx) error {
	c.Out.BulkString(session.Of(c).Info().User.Name)
	return nil
}

var specACLUsers = command.Spec{
	Name: "acl|users", Group: command.GroupServer, Since: "6.0.0", Complexity: perUser,
	Summary: "Lists the users' names.",
	Flags:   adminFlags | command.Inert,
	Examples: `
> ACL SETUSER ann
OK
> ACL USERS
1) "ann"
2) "default"
`,
	Run: runACLUsers,
}

func runACLUsers(c *command.Ctx) error {
	all := session.ServiceOf(c).Accounts().List()
	c.Out.Array(len(all))
	for _, a := range all {
		c.Out.BulkString(a.Name)
	}
	return nil
}

var specACLList = command.Spec{
	Name: "acl|list", Group: command.GroupServer, Since: "6.0.0", Complexity: perUser,
	Summary: "Lists the users with their rules, as lines of a file.",
	Flags:   adminFlags | command.Inert,
	Replies: "The rules are in a short form that makes the same user: categories first, then single commands. Passwords are hashes.",
	Examples: `
> ACL SETUSER ann on nopass ~cache:* +@read -get
OK
> ACL LIST (differs: acl-sanitize-payload)
1) "user ann on nopass ~cache:* resetchannels -@all +@read -get"
2) "user default on nopass ~* &* +@all"
`,
	Run: runACLList,
}

func runACLList(c *command.Ctx) error {
	a := session.ServiceOf(c).Accounts()
	lines := a.Lines(a.List())
	c.Out.Array(len(lines))
	for _, l := range lines {
		c.Out.BulkString(l)
	}
	return nil
}

var specACLGetuser = command.Spec{
	Name: "acl|getuser", Group: command.GroupServer, Since: "6.0.0",
	Complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
	Summary:    "Returns a user's rules.",
	Flags:      adminFlags | command.Inert,
	Args:       []command.Arg{command.Str("username")},
	History: []command.Change{{Since: "6.2.0", Text: "Added Pub/Sub channel patterns."},
		{Since: "7.0.0", Text: "Added selectors and changed the format of key and channel patterns from a list to their rule representation."}},
	Replies: "nil if there is no such user.",
	Examples: `
> ACL SETUSER ann on nopass +get ~a (+set %W~b)
OK
> ACL GETUSER ann (differs: acl-sanitize-payload, acl-databases)
 1) "flags"
 2) 1) "on"
    2) "nopass"
 3) "passwords"
 4) (empty array)
 5) "commands"
 6) "-@all +get"
 7) "keys"
 8) "~a"
 9) "channels"
10) ""
11) "selectors"
12) 1) 1) "commands"
       2) "-@all +set"
       3) "keys"
       4) "%W~b"
       5) "channels"
       6) ""
> ACL GETUSER bob
(nil)
`,
	Run: runACLGetuser,
}

func runACLGetuser(c *command.Ctx) error {
	acc := session.ServiceOf(c).Accounts().Find(string(c.Args[2]))
	if acc == nil {
		c.Out.Null()
		return nil
	}
	u, w := acc.User(), c.Out
	w.Map(6)
	w.BulkString("flags")
	w.Set(len(u.Flags()))
	for _, f := range u.Flags() {
		w.BulkString(f)
	}
	w.BulkString("passwords")
	w.Array(len(u.Passwords()))
	for _, p := range u.Passwords() {
		w.BulkString(p)
	}
	list := u.Selectors()
	writeSelector(c, &list[0])
	w.BulkString("selectors")
	w.Array(len(list) - 1)
	for i := range list[1:] {
		w.Map(3)
		writeSelector(c, &list[1+i])
	}
	return nil
}

// writeSelector writes the three pairs that describe a selector.
func writeSelector(c *command.Ctx, s *acl.Selector) {
	for _, text := range []string{"commands", s.Commands(), "keys", s.Keys(), "channels", s.Channels()} {
		c.Out.BulkString(text)
	}
}

var specACLSetuser = command.Spec{
	Name: "acl|setuser", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(N). Where N is the number of rules provided.",
	Summary: "Creates or changes a user. Applies the rules in order, all of them or none.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    everyNode,
	Args:    []command.Arg{command.Str("username"), command.Opt(command.Many("rule"))},
	History: []command.Change{{Since: "6.2.0", Text: "Added Pub/Sub channel patterns."},
		{Since: "7.0.0", Text: "Added selectors and key based permissions."}},
	Replies: "OK. The rules: on, off, nopass, resetpass, >password, <password, #hash, !hash; +command, -command, " +
		"+command|subcommand, +@category, -@category, allcommands, nocommands; ~pattern, %R~pattern, %W~pattern, allkeys, resetkeys; " +
		"&pattern, allchannels, resetchannels; (rules ...) for a further selector, clearselectors; sanitize-payload, " +
		"skip-sanitize-payload; reset.",
	Examples: `
> ACL SETUSER ann on >secret ~cache:* +@read +set
OK
2> AUTH ann secret
OK
2> SET cache:1 v
OK
2> SET other v
(error) NOPERM No permissions to access a key
2> DEL cache:1
(error) NOPERM User ann has no permissions to run the 'del' command
> ACL SETUSER ann +nonsense
(error) ERR Error in ACL SETUSER modifier '+nonsense': Unknown command or category name in ACL
`,
	Run: runACLSetuser,
}

func runACLSetuser(c *command.Ctx) error {
	name, rules := string(c.Args[2]), texts(c.Args[3:])
	if acl.HasSpaces(name) {
		return command.ReplyError("ERR Usernames can't contain spaces or null characters")
	}
	ops, unmatched := acl.Merge(rules)
	if unmatched >= 0 {
		return command.ReplyError(cleantext.Reply("ERR Unmatched parenthesis in acl selector starting at '" + rules[unmatched] + "'."))
	}
	a := session.ServiceOf(c).Accounts()
	full, known := !c.Host.Replaying() && session.ServiceOf(c).DB.ApartFull(), a.Find(name) != nil
	change, err := a.Edit(name, func(u *acl.User) error {
		had := u.Bytes()
		op, err := u.ApplyAll(a.Rules(), ops)
		if err != nil {
			return command.ReplyError(cleantext.Reply(fmt.Sprintf("ERR Error in ACL SETUSER modifier '%s': %v", op, err)))
		}
		if full && (u.Bytes() > had || !known) {
			return command.ErrApart
		}
		return nil
	})
	if err != nil {
		return err
	}
	session.ServiceOf(c).UsersChanged(change, session.Of(c))
	c.Out.OK()
	return nil
}

var specACLDeluser = command.Spec{
	Name: "acl|deluser", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(1) amortized time considering the typical user.",
	Summary: "Deletes users and closes their connections.",
	Flags:   adminFlags,
	FanOut:  command.FanOutOne,
	Tips:    everyNode,
	Args:    []command.Arg{command.Many("username")},
	Replies: "The number of those that existed.",
	Examples: `
> ACL SETUSER ann
OK
> ACL DELUSER ann bob
(integer) 1
> ACL DELUSER default
(error) ERR The 'default' user cannot be removed
`,
	Run: runACLDeluser,
}

func runACLDeluser(c *command.Ctx) error {
	names := texts(c.Args[2:])
	for _, n := range names {
		if n == acl.DefaultUser {
			return command.ReplyError("ERR The 'default' user cannot be removed")
		}
	}
	change := session.ServiceOf(c).Accounts().Remove(names)
	session.ServiceOf(c).UsersChanged(change, session.Of(c))
	c.Out.Int(int64(len(change.Gone)))
	return nil
}

var specACLCat = command.Spec{
	Name: "acl|cat", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(1) since the categories and commands are a fixed set.",
	Summary: "Lists the categories of commands, or the commands of one.",
	Flags:   ownFlags | command.Inert,
	Args:    []command.Arg{command.Opt(command.Str("categoryname"))},
	Examples: `
> ACL CAT transaction (unordered)
1) "multi"
2) "exec"
3) "discard"
4) "watch"
5) "unwatch"
> ACL CAT nonsense
(error) ERR Unknown category 'nonsense'
`,
	Run: runACLCat,
}

func runACLCat(c *command.Ctx) error {
	if len(c.Args) > 3 {
		return wrongSubcommand(c)
	}
	var names []string
	if len(c.Args) == 2 {
		names = command.CategoryNames()
	} else {
		cat, ok := command.CategoryByName(string(c.Args[2]))
		if !ok {
			return command.ReplyError(cleantext.Reply("ERR Unknown category '" + string(c.Args[2]) + "'"))
		}
		for id := range c.Table.Len() {
			if s := c.Table.Spec(id); s.ACL()&cat != 0 {
				names = append(names, s.Name)
			}
		}
	}

	c.Out.Array(len(names))
	for _, n := range names {
		c.Out.BulkString(n)
	}
	return nil
}

// maxPassBits is the longest password ACL GENPASS makes, as in Redis.
const maxPassBits = 4096

var specACLGenpass = command.Spec{
	Name: "acl|genpass", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(1)",
	Summary: "Makes a password: random bits, 256 by default, in hex.",
	Flags:   ownFlags,
	Args:    []command.Arg{command.Opt(command.Int("bits"))},
	Examples: `
> ACL GENPASS 32
"$_"
> ACL GENPASS 0
(error) ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
`,
	Run: runACLGenpass,
}

func runACLGenpass(c *command.Ctx) error {
	bits := int64(256)
	switch {
	case len(c.Args) > 3:
		return wrongSubcommand(c)
	case len(c.Args) == 3:
		var ok bool
		if bits, ok = numeral.ParseInt(c.Args[2]); !ok {
			return command.ErrNotInteger
		}
	}
	if bits <= 0 || bits > maxPassBits {
		return command.ReplyError("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
	}
	random := make([]byte, (bits+7)/8)
	_, _ = rand.Read(random) // never fails
	c.Out.BulkString(hex.EncodeToString(random)[:(bits+3)/4])
	return nil
}

var specACLDryrun = command.Spec{
	Name: "acl|dryrun", Group: command.GroupServer, Since: "7.0.0", Complexity: "O(1).",
	Summary: "Checks whether a user may run a command, without running it.",
	Flags:   adminFlags | command.Inert,
	Args:    []command.Arg{command.Str("username"), command.Str("command"), command.Opt(command.Many("arg"))},
	Replies: "OK, or the reason why the user may not.",
	Examples: `
> ACL SETUSER ann +get ~a
OK
> ACL DRYRUN ann GET a
OK
> ACL DRYRUN ann GET b
"User ann has no permissions to access the 'b' key"
> ACL DRYRUN ann SET a v
"User ann has no permissions to run the 'set' command"
`,
	Run: runACLDryrun,
}

func runACLDryrun(c *command.Ctx) error {
	acc, args := session.ServiceOf(c).Accounts().Find(string(c.Args[2])), c.Args[3:]
	if acc == nil {
		return command.ReplyError(cleantext.Reply("ERR User '" + string(c.Args[2]) + "' not found"))
	}
	spec, err := c.Table.Find(args)
	if err != nil {
		return command.ReplyError(cleantext.Reply("ERR Command '" + string(args[0]) + "' not found"))
	}
	if !spec.ArityOK(args) {
		return command.WrongArity(spec)
	}
	why, at := session.ServiceOf(c).Accounts().Check(c, acc.User(), spec, args)

	switch why {
	case acl.Allowed:
		c.Out.OK()
	case acl.DeniedCommand:
		c.Out.BulkString(acl.MayNotRun(string(c.Args[2]), spec))
	default:
		c.Out.BulkString("User " + string(c.Args[2]) + " has no permissions to access the '" + string(args[at]) + "' " + why.String())
	}
	return nil
}

var specACLLog = command.Spec{
	Name: "acl|log", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(N) with N being the number of entries shown.",
	Summary: "Lists the commands, keys and channels that were refused lately, or empties the list.",
	Flags:   adminFlags | command.Inert,
	Lacks:   command.NotWith(command.Inert, 2, "RESET"),
	Args:    []command.Arg{command.Opt(command.OneOf("operation", command.Int("count"), command.Token("RESET")))},
	History: []command.Change{{Since: "7.2.0", Text: "Added entry ID, timestamp created, and timestamp last updated."}},
	Replies: "The newest 10 entries, or count entries. An equal refusal within a minute is counted in its entry. The directive " +
		"acllog-max-len bounds the list.",
	Examples: `
2> AUTH ann guess
(error) WRONGPASS invalid username-password pair or user is disabled.
> ACL LOG 1
1)  1) "count"
    2) (integer) 1
    3) "reason"
    4) "auth"
    5) "context"
    6) "toplevel"
    7) "object"
    8) "AUTH"
    9) "username"
   10) "ann"
   11) "age-seconds"
   12) "0"
   13) "client-info"
   14) "id=$_ cmd=auth user=default $_"
   15) "entry-id"
   16) (integer) 0
   17) "timestamp-created"
   18) (integer) 1700000000000
   19) "timestamp-last-updated"
   20) (integer) 1700000000000
> ACL LOG RESET
OK
`,
	Run: runACLLog,
}

func runACLLog(c *command.Ctx) error {
	log, count := &session.ServiceOf(c).Accounts().Log, int64(10)
	switch {
	case len(c.Args) > 3:
		return wrongSubcommand(c)
	case len(c.Args) == 3 && command.EqualFold(c.Args[2], "RESET"):
		log.Reset()
		c.Out.OK()
		return nil
	case len(c.Args) == 3:
		var ok bool
		if count, ok = numeral.ParseInt(c.Args[2]); !ok {
			return command.ErrNotInteger
		}
	}
	entries, now := log.Newest(max(count, 0)), c.Now()

	c.Out.Array(len(entries))
	for i := range entries {
		writeLogEntry(c, &entries[i], now)
	}
	return nil
}

func writeLogEntry(c *command.Ctx, e *acl.LogEntry, now int64) {
	w := c.Out
	w.Map(10)
	w.BulkString("count")
	w.Int(e.Count)
	for _, text := range []string{"reason", e.Why.String(), "context", string(e.Context), "object", e.Object, "username", e.User} {
		w.BulkString(text)
	}
	w.BulkString("age-seconds")
	w.Double(float64((now-e.Updated)/1000) / 1000)
	w.BulkString("client-info")
	w.BulkString(e.Client)
	w.BulkString("entry-id")
	w.Int(e.ID)
	w.BulkString("timestamp-created")
	w.Int(e.Created / 1000)
	w.BulkString("timestamp-last-updated")
	w.Int(e.Updated / 1000)
}

const errNoACLFile = command.ReplyError("ERR This Redis instance is not configured to use an ACL file. You may want " +
	"to specify users via the ACL SETUSER command " +
	"and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.")

var specACLLoad = command.Spec{
	Name: "acl|load", Group: command.GroupServer, Since: "6.0.0", Complexity: perUser,
	Summary: "Replaces the users by those of the aclfile.",
	Flags:   adminFlags | command.Slow,
	Replies: "OK, or an error with all mistakes of the file, which changes no user. The server closes connections whose user is gone, " +
		"and those with a subscription that their user may no longer have.",
	Examples: "> ACL LOAD\n(error) " + string(errNoACLFile) + "\n",
	Run:      runACLLoad,
}

func runACLLoad(c *command.Ctx) error {
	file := session.ServiceOf(c).Config.File("aclfile")
	if file == "" {
		return errNoACLFile
	}
	change, err := session.ServiceOf(c).Accounts().LoadFile(file, session.ServiceOf(c).DB.ApartGrows)
	switch {
	case errors.Is(err, acl.ErrNoRoom):
		return command.ErrApart
	case err != nil:
		return command.ReplyError(cleantext.Reply("ERR " + err.Error()))
	}
	session.ServiceOf(c).UsersChanged(change, session.Of(c))
	c.Out.OK()
	return nil
}

var specACLSave = command.Spec{
	Name: "acl|save", Group: command.GroupServer, Since: "6.0.0", Complexity: perUser,
	Summary:  "Writes the users to the aclfile.",
	Flags:    adminFlags | command.Slow,
	FanOut:   command.FanOutOne,
	Tips:     everyNode,
	Examples: "> ACL SAVE\n(error) " + string(errNoACLFile) + "\n",
	Run:      runACLSave,
}

func runACLSave(c *command.Ctx) error {
	file := session.ServiceOf(c).Config.File("aclfile")
	if file == "" {
		return errNoACLFile
	}
	if err := session.ServiceOf(c).Accounts().SaveFile(file); err != nil {
		session.ServiceOf(c).Log.Warn("ACL SAVE failed", "err", err)
		return command.ReplyError("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
	}
	c.Out.OK()
	return nil
}
