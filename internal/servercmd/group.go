package servercmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

// GROUP is the operator's interface to a group (docs/design/group.md). Each node accepts it, and asks the
// leader of the group's directory.

const (
	errNoGroup    = command.ReplyError("ERR this server belongs to no group; start it with --group")
	errNode       = command.ReplyError("ERR the node must be a number from 1 on, as GROUP STATUS shows it")
	errAcceptLoss = command.ReplyError("ERR the recovery may lose acknowledged writes; GROUP RECOVER node ACCEPT-LOSS accepts that")

	groupSince = "0.7.0"
	// groupFlags are the flags of subcommands that wait for other nodes. They hold no shard, because the server
	// may have to change its role.
	groupFlags = adminFlags | command.NoMulti | command.Slow
)

// groupErrors returns the errors that all subcommands that change a group have in common, followed by their
// own.
func groupErrors(own ...string) []string {
	return append([]string{string(errNoGroup) + ": the server runs alone"}, own...)
}

const errorOfNode = string(errNode) + ": the argument is another text"

func groupExample(request string) string {
	return "> GROUP " + request + "\n(error) " + string(errNoGroup) + "\n"
}

var specGroup = command.Spec{
	Name: "group", Group: command.GroupServer, Since: groupSince, Complexity: "Depends on subcommand.",
	Summary: "A container for commands about the group of servers to which this one belongs.",
	Sub: []*command.Spec{&specGroupHelp, &specGroupPromote, &specGroupRecover, &specGroupRemove, &specGroupSetK,
		&specGroupStatus},
}

var specGroupHelp = helpSince("group", groupSince)

var specGroupStatus = command.Spec{
	Name: "group|status", Group: command.GroupServer, Since: groupSince, Complexity: "O(N) where N is the number of nodes",
	Summary: "Returns what this node knows of its group.",
	Flags:   adminFlags | command.NoMulti | command.Inert,
	Tips:    []string{"nondeterministic_output"},
	Replies: "Lines of name:value: those about the group in INFO replication, and one for each node of the list, group_peer0 and so on, " +
		"with its addresses, whether it has a vote and data, its incarnation and level, how long ago it was heard, of which epoch it is the " +
		"master, and up to where it has the stream.",
	Errors:   groupErrors(),
	Examples: groupExample("STATUS"),
	Run:      runGroupStatus,
}

func runGroupStatus(c *command.Ctx) error {
	g := session.ServiceOf(c).GroupOperator()
	if g == nil {
		return errNoGroup
	}
	var b strings.Builder
	g.Status(func(name string, value any) {
		if on, ok := value.(bool); ok {
			value = command.BoolToInt(on)
		}
		fmt.Fprintf(&b, "%s:%v\r\n", name, value)
	})
	c.Out.Verbatim("txt", b.String())
	return nil
}

// ofGroup returns the run function of a subcommand that changes the group. read reads the arguments after the
// subcommand.
func ofGroup(read func(args [][]byte) (change func(context.Context, session.GroupOperator) error, err error)) func(*command.Ctx) error {
	return func(c *command.Ctx) error {
		change, err := read(c.Args[2:])
		if err != nil {
			return err
		}
		svc := session.ServiceOf(c)
		g := svc.GroupOperator()
		if g == nil {
			return errNoGroup
		}

		client := session.Of(c).Info()
		asked := []any{"id", client.ID, "user", client.User.Name, "command", c.Spec.ShortName(), "argument", string(c.Args[2])}
		if err := change(c.Host.Context(), g); err != nil {
			svc.Log.Warn("a client asked for a change of the group, which failed", append(asked, "error", err)...)
			return command.ReplyError("ERR " + cleantext.Reply(err.Error()))
		}

		svc.Log.Warn("a client has changed the group", asked...)
		c.Out.OK()
		return nil
	}
}

// nodeOf reads the number of a node.
func nodeOf(arg []byte) (uint32, error) {
	n, ok := numeral.ParseInt(arg)
	if !ok || n < 1 || n > 1<<32-1 {
		return 0, errNode
	}
	return uint32(n), nil
}

var specGroupPromote = command.Spec{
	Name: "group|promote", Group: command.GroupServer, Since: groupSince, Complexity: "O(1)",
	Summary: "Makes a node of the group its master, which loses nothing.",
	Flags:   groupFlags,
	Args:    []command.Arg{command.Int("node")},
	Replies: "OK when it has begun. A master that gets the command hands the group over: writes get NOREPLICAS until the other node has " +
		"all, and then the clients of the old master are disconnected, perhaps before they have read the reply. Another node has the old " +
		"master replaced at once; replies that wait there become UNSYNCED.",
	Errors: groupErrors(errorOfNode, "ERR node 2 is the master already: it is",
		"ERR node 2 is not in sync: it may lack acknowledged writes: GROUP STATUS shows which nodes are in sync",
		"ERR this master hands the group over already: it ends when the other node is the master, or does not keep up"),
	Examples: groupExample("PROMOTE 2"),
	Run: ofGroup(func(args [][]byte) (func(context.Context, session.GroupOperator) error, error) {
		node, err := nodeOf(args[0])
		return func(ctx context.Context, g session.GroupOperator) error { return g.Promote(ctx, node) }, err
	}),
}

var specGroupSetK = command.Spec{
	Name: "group|setk", Group: command.GroupServer, Since: groupSince, Complexity: "O(1)",
	Summary: "Sets min-sync-replicas of the group: how many replicas must be in sync for the master to acknowledge anything.",
	Flags:   groupFlags,
	Args:    []command.Arg{command.Int("k")},
	Replies: "OK. The group keeps the number; the directive counts at the first start of a group alone.",
	Errors: groupErrors("ERR min-sync-replicas 2 needs 3 nodes in sync, and 2 are: fewer nodes are in sync than it needs, the master " +
		"included"),
	Examples: groupExample("SETK 1"),
	Run: ofGroup(func(args [][]byte) (func(context.Context, session.GroupOperator) error, error) {
		k, ok := numeral.ParseInt(args[0])
		if !ok || k < 0 || k > 1<<16 {
			return nil, command.ErrNotInteger
		}
		return func(ctx context.Context, g session.GroupOperator) error { return g.SetK(ctx, int(k)) }, nil
	}),
}

var specGroupRemove = command.Spec{
	Name: "group|remove", Group: command.GroupServer, Since: groupSince, Complexity: "O(1)",
	Summary: "Removes a node that has ended from the group, for ever.",
	Flags:   groupFlags,
	Args:    []command.Arg{command.Int("node")},
	Replies: "OK. The node loses its vote soon afterwards. Its place in the list of the directive group stays, and its number is not used " +
		"again. A new machine in the place of one that was lost needs no GROUP REMOVE: it takes over its address, and with it its number.",
	Errors: groupErrors(errorOfNode, "ERR node 3 at c:7379 is alive: stop it first: the node runs",
		"ERR the node is the master: promote another one before: it is", "ERR fewer than k+1 members would remain in sync: GROUP SETK "+
			"lowers k"),
	Examples: groupExample("REMOVE 3"),
	Run: ofGroup(func(args [][]byte) (func(context.Context, session.GroupOperator) error, error) {
		node, err := nodeOf(args[0])
		return func(ctx context.Context, g session.GroupOperator) error { return g.Remove(ctx, node) }, err
	}),
}

var specGroupRecover = command.Spec{
	Name: "group|recover", Group: command.GroupServer, Since: groupSince, Complexity: "O(1)",
	Summary: "Makes a node the master though it may lack acknowledged writes, where no node is in sync any longer.",
	Flags:   groupFlags,
	Args:    []command.Arg{command.Int("node"), command.Token("ACCEPT-LOSS")},
	Replies: "OK. The acknowledged writes that the node lacks are lost. INFO counts it for ever, as group_accepted_losses. The other nodes " +
		"get the data of that node. It is refused while a node in sync is alive, as far as this node and the leader know: stop one that they " +
		"do not reach first, because it would go on answering.",
	Errors: groupErrors(errorOfNode, string(errAcceptLoss)+": the last argument is another", "ERR the node at a:6379 is in sync and alive: "+
		"promote it, which loses nothing: GROUP PROMOTE makes it the master", "ERR node 2 is not alive: it does not run"),
	Examples: groupExample("RECOVER 2 ACCEPT-LOSS"),
	Run: ofGroup(func(args [][]byte) (func(context.Context, session.GroupOperator) error, error) {
		node, err := nodeOf(args[0])
		if err == nil && !command.EqualFold(args[1], "ACCEPT-LOSS") {
			err = errAcceptLoss
		}
		return func(ctx context.Context, g session.GroupOperator) error { return g.Recover(ctx, node) }, err
	}),
}
