package command

import (
	"bufio"
	"fmt"
	"net"
	"sort"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/realserver"
	"github.com/ebbdb/ebb/resp"
)

// difference is where we knowingly describe a command differently from
// redis-server 7.0.15: the parts of COMMAND INFO and DOCS that differ, and why.
type difference struct{ parts, reason string }

var knownDifferences = map[string]difference{
	"ttl":                     {"arity arguments", "TTL key member, as in KeyDB"},
	"pttl":                    {"arity arguments", "PTTL key member, as in KeyDB"},
	"persist":                 {"arity arguments", "PERSIST key member, as in KeyDB"},
	"hgetall":                 {"arity", "WITHTTL"},
	"smembers":                {"arity", "WITHTTL"},
	"zrank":                   {"arity arguments", "WITHSCORE came with 7.2"},
	"zrevrank":                {"arity arguments", "WITHSCORE came with 7.2"},
	"client|kill":             {"arguments", "MAXAGE is of 7.4, other filters are Valkey's"},
	"client|list":             {"arguments", "further filters are Valkey's"},
	"blpop":                   {"flags", "scripts may call it since 7.2"},
	"brpop":                   {"flags", "scripts may call it since 7.2"},
	"blmove":                  {"flags", "scripts may call it since 7.2"},
	"brpoplpush":              {"flags", "scripts may call it since 7.2"},
	"bzpopmin":                {"flags", "scripts may call it since 7.2"},
	"bzpopmax":                {"flags", "scripts may call it since 7.2"},
	"wait":                    {"flags acl", "scripts may call it, and it is in @blocking, since 7.2"},
	"bitcount":                {"arguments", "a start without an end, as in Valkey"},
	"command|getkeys":         {"arity arguments", "since 7.2 the grammar is documented, and a command without arguments is asked about as well"},
	"command|getkeysandflags": {"arity arguments", "since 7.2 the grammar is documented, and a command without arguments is asked about as well"},
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
	"WITHTTL":  "replies the items' deadlines",
	"NOVALUES": "HSCAN's, as in Redis 7.4",
}

// What is derived from a grammar is what Redis says of it.
func TestFixturesAreDescribedAsByRedis(t *testing.T) {
	compareWithRedis(t, fixtureTable(t), "arity", "flags", "range", "acl", "keyspecs", "arguments")
}

func TestEveryCommandIsDescribedAsByRedis(t *testing.T) {
	table, err := DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	compareWithRedis(t, table, "arity", "flags", "range", "acl", "tips", "keyspecs", "group", "since", "deprecated", "arguments")
}

// compareWithRedis compares COMMAND INFO and COMMAND DOCS of every command that
// redis-server has too, in the given parts.
func compareWithRedis(t *testing.T, table *Table, parts ...string) {
	conn, err := net.Dial("tcp", realserver.Start(t, "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	ask := func(args ...string) resp.Value {
		t.Helper()
		if _, err := conn.Write(resp.AppendCommand(nil, args...)); err != nil {
			t.Fatal(err)
		}
		v, err := resp.ReadValue(r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ask("HELLO", "3")
	compared := 0
	for id := range table.Len() {
		s := table.Spec(id)
		info := ask("COMMAND", "INFO", s.Name).Elems[0]
		if info.IsNull() {
			continue
		}
		compared++
		want := describe(info, ask("COMMAND", "DOCS", s.Name).Elems[1])
		ours := describe(written(s.writeInfo)[0], written(s.writeDocs)[1])
		compareParts(t, s.Name, parts, ours, want)
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// written gives what a method writes to a RESP3 connection, as values.
func written(write func(*resp.Writer)) []resp.Value {
	w := resp.Writer{Proto: 3}
	w.Collect()
	write(&w)
	return w.Values()
}

func compareParts(t *testing.T, name string, parts []string, ours, want map[string]string) {
	t.Helper()
	known := knownDifferences[name]
	for _, part := range parts {
		expected := strings.Contains(" "+known.parts+" ", " "+part+" ")
		switch {
		case ours[part] == want[part] && expected:
			t.Errorf("%s: %s does not differ any more; take it off the list", name, part)
		case ours[part] != want[part] && !expected:
			t.Errorf("%s: %s\n ours  %s\n redis %s", name, part, ours[part], want[part])
		}
	}
}

// describe renders the comparable parts of a command's description. Summaries,
// notes and the wording of complexities are our own.
func describe(info, docs resp.Value) map[string]string {
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
	for part, key := range map[string]string{"group": "group", "since": "since", "deprecated": "deprecated_since", "arguments": "arguments"} {
		if v, ok := docs.Get(key); ok {
			m[part] = render(v, "")
		}
	}
	return m
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
