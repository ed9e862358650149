package console

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/redact"
	"github.com/ebbdb/ebb/resp"
)

// Where values are hidden (http-console-values no), two rules keep them so. A reply has the lengths of values instead of them. And the gate
// lets no command through whose reply or effect depends on the content of a value: a viewer with enough of its answers has the value. What
// passes treats a value as a text of some length, so no sequence of such commands tells more than lengths.
//
// Keys, fields, members, ids, owners and scores are names, which are shown. So is how a key is stored: its encoding and its size may tell
// that a value is a number.

// valueOf returns a value, a payload or an argument in a reply for a page: cut to a preview, or its length alone where values
// are hidden.
func (c *Console) valueOf(v resp.Value) blob { return shownOf(v, c.opt.HideValues) }

// itemOf returns the item of a deadline, which is a name, but the element of a list is a value.
func (c *Console) itemOf(level string, name blob) blob {
	if l, known := engine.LevelNamed(level); c.opt.HideValues && (!known || l == engine.LevelElement) {
		return blob{s: name.s, n: max(name.n, len(name.s)), hidden: true}
	}
	return name
}

// replyJSON returns a reply for JavaScript, with its values hidden where values are.
func (c *Console) replyJSON(v resp.Value) any { return replyJSON(v, c.opt.HideValues) }

// hidesReply reports whether the reply to a request has values, and values are hidden. The replies of commands that
// look at the server are shown, except for those that have arguments of others, or the text of scripts.
func (c *Console) hidesReply(argv [][]byte) bool {
	if !c.opt.HideValues {
		return false
	}
	spec := c.specOf(argv)
	if spec == nil || spec.HasKeys() || spec.Flags&(command.ReadOnly|command.Scripts) != 0 {
		return true
	}
	return !isRead(spec, argv) || slices.Contains([]string{"slowlog|get", "script|show", "function|list", "function|dump"}, spec.Name)
}

// secret reports whether a request has what the logs leave out, such as a password.
func (c *Console) secret(argv [][]byte) bool {
	spec, err := c.svc.Table().Find(argv)
	if err != nil {
		return false
	}
	shown := redact.Request(c.svc.Table(), spec, argv)
	return len(shown) > 0 && &shown[0] != &argv[0]
}

// groupsOfNames are the groups of the commands on types that have names and numbers, and no hidden value.
var groupsOfNames = []command.Group{command.GroupSet, command.GroupSortedSet, command.GroupGeo, command.GroupLimiter, command.GroupLock,
	command.GroupSemaphore, command.GroupBloom}

// blindCommands are the other commands on keys that a console with hidden values runs: they store, move, remove or return values, whatever
// these are. A new command is refused until it stands here.
var blindCommands = strings.Fields(`
	copy del exists expire expireat expiremember expirememberat expiretime fieldexpire fieldttl move object|encoding object|freq
	object|idletime object|refcount persist pexpire pexpireat pexpirememberat pexpiretime pttl rename renamenx restore touch ttl type unlink
	append get getdel getex getfresh getrange getset mget mset msetex msetnx psetex set setex setnx setrange stale strlen substr unlease
	hdel hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hkeys hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime
	hpttl hrandfield hscan hset hsetex hsetnx hstrlen httl hvals
	blmove blmovem blmpop blpop brpop brpoplpush lexpire lexpireat lexpiretime lindex llen lmove lmovem lmpop lpersist lpexpire lpexpireat
	lpexpiretime lpop lpttl lpush lpushex lpushx lrange lset ltrim lttl rpop rpoplpush rpush rpushex rpushx
	xack xackdel xadd xautoclaim xclaim xdel xdelex xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|setid
	xinfo|consumers xinfo|groups xinfo|stream xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim
	dq.ack dq.add dq.cancel dq.config dq.extend dq.get dq.info dq.move dq.nack dq.peek dq.pop dq.schedule dq.schedules dq.unschedule
	expiry|rule memory|usage`)

// tells reports whether the reply or the effect of a command depends on the content of a value.
func tells(spec *command.Spec, argv [][]byte) bool {
	switch {
	case spec.Has(command.Scripts), strings.HasPrefix(spec.Name, "debug|"):
		return true
	case !spec.HasKeys(), slices.Contains(groupsOfNames, spec.Group):
		return false
	case !slices.Contains(blindCommands, spec.Name):
		return true
	}
	has := func(from int, words ...string) bool {
		return slices.ContainsFunc(argv[min(from, len(argv)):], func(a []byte) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(string(a), w) })
		})
	}
	switch spec.Name {
	case "set":
		return has(3, "IFEQ", "IFNE", "IFDEQ", "IFDNE")
	case "dq.add": // with the id * UNIQUE compares payloads
		return has(4, "UNIQUE")
	case "expiry|rule": // the id of a job has the element of a list that has expired
		return has(5, "QUEUE")
	}
	return false
}
