package sentinel

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

// about lists the subcommands whose argument is the group's name.
const about = " get-master-addr-by-name master replicas slaves sentinels ckquorum failover "

// sentinel runs SENTINEL.
func (c *client) sentinel(words []string) {
	if len(words) == 0 {
		c.arity("sentinel")
		return
	}
	v, sub := c.opt.View(), strings.ToLower(words[0])
	if sub == "failover" && !c.may("failover") {
		return
	}
	if sub == "recover" {
		if c.may("group", "recover") {
			c.recover(v, words)
		}
		return
	}
	switch names := strings.Contains(about, " "+sub+" "); {
	case names && len(words) != 2, !names && len(words) != 1 && (sub == "masters" || sub == "myid"):
		c.arity("sentinel|" + sub)
		return
	case names && (words[1] != v.Name || v.Master.Host == "") && sub == "get-master-addr-by-name":
		c.w.NullArray()
		return
	case names && (words[1] != v.Name || v.Master.Host == ""):
		c.w.Error("ERR No such master with that name")
		return
	}
	switch sub {
	case "get-master-addr-by-name":
		c.w.Array(2)
		c.w.BulkString(v.Master.Host)
		c.w.BulkString(strconv.Itoa(v.Master.Port))
	case "masters":
		if v.Master.Host == "" {
			c.w.Array(0)
			return
		}
		c.w.Array(1)
		c.fields(v.master())
	case "master":
		c.fields(v.master())
	case "replicas", "slaves":
		c.w.Array(len(v.Replicas))
		for _, s := range v.Replicas {
			c.fields(v.replica(s))
		}
	case "sentinels":
		c.w.Array(len(v.Others))
		for _, s := range v.Others {
			c.fields(v.other(s))
		}
	case "ckquorum":
		c.quorum(v)
	case "failover":
		c.later = c.opt.Failover
	case "myid":
		c.w.BulkString(v.ID)
	default:
		c.w.Error("ERR unknown subcommand '" + words[0] + "'. Try SENTINEL HELP.")
	}
}

// fields writes names and values as a map, which is an array in RESP2.
func (c *client) fields(all []string) {
	c.w.Map(len(all) / 2)
	for _, s := range all {
		c.w.BulkString(s)
	}
}

func (c *client) quorum(v View) {
	if v.Usable >= v.Quorum {
		c.w.Simple("OK " + strconv.Itoa(v.Usable) + " usable Sentinels. Quorum and failover authorization can be reached")
		return
	}
	c.w.Error("NOQUORUM " + strconv.Itoa(v.Usable) + " usable Sentinels. Not enough available Sentinels to reach " +
		"the specified quorum for this " +
		"master. Not enough available Sentinels to reach the majority and authorize a failover")
}

// recover runs SENTINEL RECOVER group host port ACCEPT-LOSS, which redis-sentinel does not have.
func (c *client) recover(v View, words []string) {
	switch {
	case len(words) != 5:
		c.arity("sentinel|recover")
	case words[1] != v.Name:
		c.w.Error("ERR No such master with that name")
	case !strings.EqualFold(words[4], "accept-loss"):
		c.w.Error("ERR it may lose acknowledged writes: SENTINEL RECOVER group host port ACCEPT-LOSS does it")
	default:
		to := net.JoinHostPort(words[2], words[3])
		c.later = func(ctx context.Context) error { return c.opt.Recover(ctx, to) }
	}
}

// answer writes the result of the slow part of a command.
func (c *client) answer(err error) {
	switch {
	case err == nil:
		c.w.OK()
	case errors.Is(err, ErrNoReplica):
		c.w.Error("NOGOODSLAVE No suitable replica to promote")
	case errors.Is(err, ErrUnderWay):
		c.w.Error("INPROG Failover already in progress")
	default:
		c.w.Error("ERR " + err.Error())
	}
}

// common returns the fields that all kinds of servers share.
func (v View) common(name, flags string, s Server) []string {
	if s.Down {
		flags = "s_down," + flags
		if strings.HasSuffix(flags, "slave") {
			flags += ",disconnected"
		}
	}
	since := millis(s.SinceHeartbeat)
	return []string{"name", name, "ip", s.Host, "port", strconv.Itoa(s.Port), "runid", s.ID, "flags", flags, "link-pending-commands", "0",
		"link-refcount", "1", "last-ping-sent", "0", "last-ok-ping-reply", since, "last-ping-reply", since,
		"down-after-milliseconds", millis(v.DownAfter)}
}

func (v View) master() []string {
	since := millis(v.Master.SinceHeartbeat)
	return append(v.common(v.Name, "master", v.Master), "info-refresh", since, "role-reported", "master", "role-reported-time", since,
		"config-epoch", strconv.FormatUint(v.Epoch, 10), "num-slaves", strconv.Itoa(len(v.Replicas)),
		"num-other-sentinels", strconv.Itoa(len(v.Others)), "quorum", strconv.Itoa(v.Quorum),
		"failover-timeout", millis(v.DownAfter), "parallel-syncs", strconv.Itoa(max(len(v.Replicas), 1)))
}

func (v View) replica(s Server) []string {
	since, down, status := millis(s.SinceHeartbeat), "0", "ok"
	if !s.Linked {
		down, status = since, "err"
	}
	return append(v.common(s.address(), "slave", s), "info-refresh", since, "role-reported", "slave", "role-reported-time", since,
		"master-link-down-time", down, "master-link-status", status, "master-host", v.Master.Host,
		"master-port", strconv.Itoa(v.Master.Port), "slave-priority", "100", "slave-repl-offset", strconv.FormatUint(s.Offset, 10),
		"replica-announced", "1")
}

func (v View) other(s Server) []string {
	return append(v.common(s.ID, "sentinel", s), "last-hello-message", millis(s.SinceHeartbeat),
		"voted-leader", "?", "voted-leader-epoch", "0")
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
