package commands_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// allowance is an intended difference between ebb's and another server's description of a command.
type allowance struct {
	commands, parts string         // the names of commands, and the parts of COMMAND INFO and COMMAND DOCS
	id              string         // the id of the difference in internal/compat
	only            compat.Servers // the servers that show it, if not all servers of the difference do
}

// allowances lists all allowed differences. Each must show on each of its servers that has the command.
var allowances = []allowance{
	{"ttl pttl persist", "arity arguments", "own-options", 0},
	{"hgetall smembers", "arity", "own-options", 0},
	{"hsetex", "arguments", "own-options", 0},
	{"zrank zrevrank", "arity arguments", "rank-with-score", 0},
	{"client|kill client|list", "arguments", "client-filters", 0},
	{"client|kill client|list", "arguments", "filters-described", 0},
	{"blpop brpop blmove brpoplpush bzpopmin bzpopmax", "flags", "scripts-waiting", 0},
	{"wait", "flags acl", "scripts-waiting", 0},
	{"bitcount", "arguments", "bitcount-start", 0},
	{"command|getkeys command|getkeysandflags", "arity arguments", "getkeys-bare", 0},

	{"acl|deluser acl|save acl|setuser client|setname config|resetstat config|rewrite latency|reset msetnx randomkey scan",
		"tips", "descriptions-of-7", 0},
	{"client|pause", "since", "descriptions-of-7", 0},
	{"cluster|slots cluster|shards", "flags", "descriptions-of-7", 0},
	{"sinterstore", "keyspecs", "descriptions-of-7", 0},
	{"bitop pfmerge geopos geohash georadius georadiusbymember migrate psubscribe xinfo|stream config|get module|loadex",
		"arguments", "grammar-of-7", 0},

	{"brpoplpush cluster|slots georadius georadius_ro georadiusbymember georadiusbymember_ro getset hmset rpoplpush substr " +
		"zrangebylex zrangebyscore zrevrange zrevrangebylex zrevrangebyscore", "deprecated", "deprecated-since", compat.Valkey9},
	{"psetex setex setnx quit", "deprecated", "deprecated-since", compat.Redis8},

	{"client|caching client|getname client|getredir client|id client|no-evict client|no-touch client|reply client|setinfo client|setname " +
		"cluster|info cluster|myid cluster|nodes exec memory|malloc-stats memory|purge multi script|exists script|flush script|show select watch",
		"flags", "flags-of-valkey", 0},
	{"delifeq georadius georadiusbymember hsetex", "keyspecs", "keyspecs-of-valkey", 0},
	{"hexpire hexpireat hexpiretime hgetdel hgetex hpersist hpexpire hpexpireat hpexpiretime hpttl hsetex httl msetex",
		"since", "since-of-valkey", 0},
	{"hpttl httl msetex", "tips", "tips-of-valkey", 0},
	{"cluster|replicate script|debug", "arity arguments", "options-of-valkey", 0},
	{"bgsave cluster|setslot geosearch geosearchstore shutdown zscan", "arguments", "options-of-valkey", 0},
	{"hexpireat hpexpireat", "arguments", "grammar-of-valkey", 0},

	{"client", "subcommands", "commands-of-later", 0},
	{"client", "subcommands", "missing-commands", compat.Valkey9},
	{"cluster", "subcommands", "missing-commands", 0},
	{"debug", "subcommands", "debug-tools", 0},
	{"script", "subcommands", "script-show", 0},
}

// allowed returns the IDs of the differences in the parts of a command on a server.
func allowed(t *testing.T, program, command string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for _, a := range allowances {
		if !slices.Contains(strings.Fields(a.commands), command) {
			continue
		}
		covers, err := compat.Covers(a.id, program)
		if err != nil {
			t.Fatal(err)
		}
		if covers && (a.only == 0 || a.only.Has(compat.Of(program))) {
			for part := range strings.FieldsSeq(a.parts) {
				ids[part] = a.id
			}
		}
	}
	return ids
}

// ownArguments are the tokens of arguments that ebb adds to Redis's commands; the
// comparison leaves them out.
var ownArguments = map[string]string{
	"IFEQ":     "compare and set, as in Redis 8.4",
	"IFNE":     "compare and set, as in Redis 8.4",
	"IFDEQ":    "compare and set, as in Redis 8.4",
	"IFDNE":    "compare and set, as in Redis 8.4",
	"JITTER":   "spreads deadlines",
	"SLIDE":    "reads extend the deadline",
	"FRESH":    "a second, earlier deadline",
	"IFTOKEN":  "only the client that loads the value sets it",
	"WITHTTL":  "replies the items' deadlines",
	"NOVALUES": "HSCAN's, as in Redis 7.4",
}

// COMMAND INFO and COMMAND DOCS, which ebb derives from the grammars, must agree with Redis's descriptions.
func TestEveryCommandIsDescribedAsByRedis(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range compat.All.Programs() {
		t.Run(program, func(t *testing.T) {
			compareWithServer(t, program, table, "arity", "flags", "range", "acl", "tips", "keyspecs", "group", "since", "deprecated",
				"arguments", "subcommands")
		})
	}
}

// compareWithServer compares the given parts of COMMAND INFO and COMMAND DOCS, for every command that both
// servers have.
func compareWithServer(t *testing.T, program string, table *command.Table, parts ...string) {
	conn, err := net.Dial("tcp", realserver.Start(t, program))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	ask := func(args ...string) resp.Value {
		t.Helper()
		if _, err := conn.Write(wire.AppendCommand(nil, args...)); err != nil {
			t.Fatal(err)
		}
		v, err := wire.ReadValue(r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ask("HELLO", "3")
	newer := compat.Newer.Has(compat.Of(program))
	compared, differing := 0, map[string]int{}
	for id := range table.Len() {
		s := table.Spec(id)
		info := ask("COMMAND", "INFO", s.Name).Elems[0]
		if info.IsNull() {
			continue
		}
		compared++
		theirDocs, ourDocs := ask("COMMAND", "DOCS", s.Name).Elems[1], written(func(w *wire.Writer) { command.WriteDocs(s, w) })[1]
		want, ours := describe(info, theirDocs, newer), describe(written(func(w *wire.Writer) { command.WriteInfo(s, w) })[0], ourDocs, newer)
		if a, b := describe(info, theirDocs, false)["arguments"], describe(info, ourDocs, false)["arguments"]; a != b &&
			ours["arguments"] == want["arguments"] {
			differing[argumentNames]++
		}
		compareParts(t, program, s.Name, parts, ours, want, differing)
	}
	t.Logf("%s: %d commands were compared; differing parts: %v", program, compared, differing)
	if ok, err := compat.Covers(argumentNames, program); err != nil || ok != newer {
		t.Errorf("%s holds for %s: %v, %v", argumentNames, program, ok, err)
	}
	if newer && differing[argumentNames] == 0 {
		t.Errorf("%s has the names of ebb for all arguments", program)
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// written returns the values that a function writes to a RESP3 connection.
func written(write func(*wire.Writer)) []resp.Value {
	w := wire.Writer{Proto: 3}
	w.Collect()
	write(&w)
	return w.Values()
}

// compareParts compares the parts of a command's description, and counts those that differ by ID.
func compareParts(t *testing.T, program, name string, parts []string, ours, want map[string]string, differing map[string]int) {
	t.Helper()
	ids := allowed(t, program, name)
	for _, part := range parts {
		id := ids[part]
		switch {
		case ours[part] == want[part] && id != "":
			t.Errorf("%s: %s: %s no longer differs; take it off the list (%s)", program, name, part, id)
		case ours[part] != want[part] && id == "":
			t.Errorf("%s: %s: %s\n ours   %s\n server %s", program, name, part, ours[part], want[part])
		case id != "":
			differing[id]++
		}
	}
}

// describe renders the comparable parts of a command's description. Summaries, notes and the wording of
// complexities are ebb's own. The newer servers name many arguments differently (argument-names), so for them
// only the shape of the arguments counts.
func describe(info, docs resp.Value, newer bool) map[string]string {
	e := info.Elems
	m := map[string]string{
		"arity": fmt.Sprint(e[1].Int),
		"flags": sorted(e[2]),
		"range": fmt.Sprint(e[3].Int, e[4].Int, e[5].Int),
		"acl":   sorted(e[6]),
		"tips":  sorted(e[7]),
	}
	for _, k := range e[8].Elems {
		m["keyspecs"] += render(k, "notes") + " "
	}
	var subs []string
	for _, sub := range e[9].Elems {
		subs = append(subs, sub.Elems[0].Str)
	}
	slices.Sort(subs)
	m["subcommands"] = strings.Join(subs, " ")
	for part, key := range map[string]string{"group": "group", "since": "since", "deprecated": "deprecated_since", "arguments": "arguments"} {
		if v, ok := docs.Get(key); ok {
			m[part] = render(v, "")
			if part == "arguments" && newer {
				m[part] = shape(v)
			}
		}
	}
	return m
}

// argumentNames is the difference because of which only the shape of arguments is compared
// with the newer servers.
const argumentNames = "argument-names"

// shape renders a grammar without the names of the arguments, their display texts, and the versions that
// added the options.
func shape(v resp.Value) string {
	var out []string
	for _, a := range v.Elems {
		token, has := a.Get("token")
		if ownArguments[token.Str] != "" {
			continue
		}
		kind, _ := a.Get("type")
		text := kind.Str
		if has {
			text += " " + token.Str
		}
		if spec, ok := a.Get("key_spec_index"); ok && kind.Str == "key" {
			text += fmt.Sprint(" of spec ", spec.Int)
		}
		if parts, ok := a.Get("arguments"); ok {
			text += " [" + shape(parts) + "]"
		}
		if flags, ok := a.Get("flags"); ok {
			text += " (" + sorted(flags) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// sorted renders a set of words in a fixed order.
func sorted(v resp.Value) string {
	var words []string
	for _, e := range v.Elems {
		words = append(words, e.Str)
	}
	sort.Strings(words)
	return strings.Join(words, " ")
}

// render writes a reply on one line, sets sorted, maps without the given key.
func render(v resp.Value, without string) string {
	var out []string
	switch v.Kind {
	case resp.KindMap:
		for i := 0; i+1 < len(v.Elems); i += 2 {
			if key := v.Elems[i].Str; key != without {
				out = append(out, key+"="+render(v.Elems[i+1], without))
			}
		}
		return "{" + strings.Join(out, " ") + "}"
	case resp.KindSet:
		return "(" + sorted(v) + ")"
	case resp.KindArray:
		for _, e := range v.Elems {
			if token, _ := e.Get("token"); ownArguments[token.Str] == "" {
				out = append(out, render(e, without))
			}
		}
		return "[" + strings.Join(out, " ") + "]"
	case resp.KindInt:
		return fmt.Sprint(v.Int)
	}
	return v.Str
}
