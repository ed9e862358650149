package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
)

// actions are the actions of the pages' buttons, each with example requests. A viewer may do an action if one
// of its commands may run; a key in an example stands for any key.
var actions = map[string][]string{
	"expiry.rule": {"EXPIRY RULE SET r TO s"}, "expiry.persist": {"PERSIST k"}, "expiry.prolong": {"PEXPIRE k 1 GT"},
	"keys.view": {"SCAN 0"}, "keys.del": {"UNLINK k"}, "keys.rename": {"RENAMENX k l"}, "keys.copy": {"COPY k l"}, "keys.ttl": {"PEXPIRE k 1"},
	"key.set": {"SET k v", "HSET k f v", "LSET k 0 v"}, "key.add": {"HSET k f v", "SADD k m", "ZADD k 1 m", "RPUSH k v"},
	"key.remove":  {"HDEL k f", "SREM k m", "ZREM k m", "LREM k 1 v"},
	"key.itemttl": {"HPEXPIRE k 1 FIELDS 1 f", "SPEXPIRE k 1 MEMBERS 1 m", "ZPEXPIRE k 1 MEMBERS 1 m", "LPEXPIRE k 1 INDEXES 1 0"},
	"key.persist": {"PERSIST k"}, "key.restore": {"RESTORE k 0 x"}, "key.dump": {"DUMP k"},
	"limits.view": {"RL.INFO k"}, "limits.reset": {"RL.RESET k"}, "limits.cancel": {"RL.CANCEL k t"}, "limits.take": {"RL.TAKE k 1 1000"},
	"locks.view": {"LOCK.INFO k"}, "locks.release": {"LOCK.RELEASE k o 1"}, "locks.semrelease": {"SEM.RELEASE k o"}, "locks.kill": {"CLIENT KILL ID 1"},
	"queues.view": {"DQ.INFO k"}, "queues.add": {"DQ.ADD k i p"},
	"queues.cancel": {"DQ.CANCEL k i"}, "queues.run": {"DQ.MOVE k l COUNT 1"},
	"queues.move": {"DQ.MOVE k l COUNT 1"}, "queues.unschedule": {"DQ.UNSCHEDULE k n"},
	"queues.config": {"DQ.CONFIG k"}, "queues.pause": {"DQ.CONFIG k"},
	"streams.view": {"XINFO STREAM k"}, "streams.ack": {"XACK k g 1"}, "streams.claim": {"XCLAIM k g c 0 1"}, "streams.delconsumer": {"XGROUP DELCONSUMER k g c"},
	"streams.trim": {"XTRIM k MAXLEN 1"}, "streams.rule": {"EXPIRY RULE SET r TO s"},
	"performance.view": {"INFO"}, "performance.slowreset": {"SLOWLOG RESET"}, "performance.config": {"CONFIG SET a b"}, "performance.scriptkill": {"SCRIPT KILL"},
	"performance.scripts": {"FUNCTION LIST", "SCRIPT SHOW x"}, "performance.show": {"SCRIPT SHOW x"}, "performance.scriptflush": {"SCRIPT FLUSH"},
	"performance.fundel": {"FUNCTION DELETE l"}, "performance.latreset": {"LATENCY RESET"},
	"server.view": {"INFO"}, "server.kill": {"CLIENT KILL ID 1"}, "server.bgsave": {"BGSAVE"}, "server.bgrewrite": {"BGREWRITEAOF"},
	"server.config": {"CONFIG SET a b"}, "server.rewrite": {"CONFIG REWRITE"}, "server.acl": {"ACL SETUSER u"}, "server.failover": {"FAILOVER"},
	"server.audit": {"ACL LOG"}, "server.aclreset": {"ACL LOG RESET"}, "server.config.view": {"CONFIG GET x"}, "server.acl.view": {"ACL LIST"},
	"server.deluser": {"ACL DELUSER u"}, "server.promote": {"GROUP PROMOTE 1"}, "walk.use": {"SCAN 0"}, "shell.use": {"PING"},
}

// me is the response to GET api/me: the data that the pages need first.
type me struct {
	User      blob              `json:"user"`
	Loginable bool              `json:"loginable"` // there is a login that the viewer can end
	Others    bool              `json:"others"`    // the server has other users, and they can log in
	Label     *label            `json:"label"`
	ReadOnly  bool              `json:"readOnly"`
	Writes    bool              `json:"writes"` // the user may do at least one action that changes something
	Values    bool              `json:"values"`
	DB        int               `json:"db"`
	Databases int               `json:"databases"`
	Role      string            `json:"role"`
	Version   string            `json:"version"`
	Follows   bool              `json:"follows"` // a replica that refuses writes
	Grouped   bool              `json:"grouped"` // the server is a member of a group
	Loading   *progress         `json:"loading"`
	Open      any               `json:"open"` // false, or the reason why other machines reach the server without a password
	Now       float64           `json:"now"`  // ms
	Can       map[string]bool   `json:"can"`
	Need      map[string]string `json:"need"` // for each action that the user may not do: the rule that would allow it
}

type label struct {
	Text  string `json:"text"`
	Color string `json:"color"`
}

// progress is the progress of a load, from 0 to 1.
type progress struct {
	Done float64 `json:"done"`
}

// getMe answers GET api/me. It runs no command, so that a user who may run hardly any can log in.
func getMe(c *Console, q *request) (any, error) {
	m := me{User: bytesOf(q.v.id.Name()), Loginable: q.v.createdAt != 0, ReadOnly: c.opt.ReadOnly, Values: !c.opt.HideValues,
		Databases: c.svc.DB.Databases(), Role: "master", Version: admin.Version, Loading: c.loading(), Open: false,
		Grouped: c.svc.Grouped(),
		Now:     float64(c.clock.Micros()) / 1000, Can: map[string]bool{}, Need: map[string]string{}}
	m.Others = c.opt.Access == nil && len(c.svc.Accounts().List()) > 1
	if c.label != "" {
		m.Label = &label{c.label, c.colour}
	}
	if c.svc.Replication().IsReplica() {
		m.Role = "replica"
		m.Follows = c.svc.Config.Bool("replica-read-only")
	}
	if c.isOpen(q.v) && c.svc.Denied() == "" {
		m.Open = "the server has no password, and lets in clients of other machines: set one (requirepass), or protected-mode yes"
	}
	for action, examples := range actions {
		ok, need := c.canRun(q.v, examples)
		if m.Can[action] = ok; !ok {
			m.Need[action] = need
		}
		m.Writes = m.Writes || ok && c.changes(examples)
	}
	return m, nil
}

// changes reports whether one of the example commands may change something.
func (c *Console) changes(examples []string) bool {
	return slices.ContainsFunc(examples, func(x string) bool {
		argv := requestOf(x)
		spec := c.specOf(argv)
		return spec != nil && !isRead(spec, argv)
	})
}

// requestOf returns an example as a request.
func requestOf(example string) (argv [][]byte) {
	for w := range strings.FieldsSeq(example) {
		argv = append(argv, []byte(w))
	}
	return argv
}

// canRun reports whether a viewer may run one of the commands on some key. need is the permission that the
// first one needs.
func (c *Console) canRun(v *viewer, examples []string) (ok bool, need string) {
	for _, x := range examples {
		argv := requestOf(x)
		spec := c.specOf(argv)
		why := ""
		switch {
		case spec == nil:
			why = "the server has no command " + string(argv[0])
		case c.opt.ReadOnly && !isRead(spec, argv):
			why = "http-console-read-only no"
		case c.opt.HideValues && tells(spec, argv):
			why = "http-console-values yes"
		case v.id.MayRun(argv...):
			return true, ""
		default:
			why = "+" + spec.Name
		}
		need = cmp.Or(need, why)
	}
	return false, need
}

// loading returns the progress of a load, or nil if the server has loaded.
func (c *Console) loading() *progress {
	h := c.svc.Admin().Host
	if !h.Loading() {
		return nil
	}
	f := h.Files()
	if f.LoadingTotal <= 0 {
		return &progress{}
	}
	return &progress{min(1, float64(f.LoadingLoaded)/float64(f.LoadingTotal))}
}
