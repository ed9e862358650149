package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// command is the entry of a command in COMMAND DOCS. A subcommand is a command of its own:
// "CONFIG GET".
type command struct {
	name                              string // in capitals
	summary, since, group, complexity string
	args                              []argument
}

// argument is one of COMMAND DOCS' arguments.
type argument struct {
	name, kind, token         string
	optional, multiple, again bool // again: multiple, and the token is repeated too
	args                      []argument
}

// lookup fetches the command table on a connection of its own, in the background, so that
// the prompt never waits for it. For a server without COMMAND DOCS it has the names only;
// without a server it has nothing.
type lookup struct {
	cancel context.CancelFunc
	done   chan struct{}
	byName []command // sorted; readable once done is closed
}

func startLookup(ctx context.Context, opt Options) *lookup {
	ctx, cancel := context.WithCancel(ctx)
	l := &lookup{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.byName = fetchCommands(ctx, opt)
	}()
	return l
}

// stop ends the lookup and waits for its goroutine. It does nothing for a nil lookup.
func (l *lookup) stop() {
	if l != nil {
		l.cancel()
		<-l.done
	}
}

// all returns the commands, sorted by name; none while they are being fetched,
// unless wait says to wait.
func (l *lookup) all(wait bool) []command {
	if l == nil {
		return nil
	}
	if wait {
		<-l.done
	}
	select {
	case <-l.done:
		return l.byName
	default:
		return nil
	}
}

func fetchCommands(ctx context.Context, opt Options) []command {
	cn, err := dial(ctx, &opt)
	if err != nil {
		return nil
	}
	defer cn.close()
	defer context.AfterFunc(ctx, cn.close)()
	for _, s := range greeting(&opt, 0) {
		if _, err := cn.do(s.args...); err != nil {
			return nil
		}
	}
	all := parseDocs(cn)
	slices.SortFunc(all, func(a, b command) int { return strings.Compare(a.name, b.name) })
	return all
}

func parseDocs(cn *conn) (all []command) {
	v, err := cn.do("COMMAND", "DOCS")
	if err == nil {
		for name, doc := range v.Pairs {
			all = appendCommand(all, name.Str, doc)
		}
		return all
	}
	if v, err = cn.do("COMMAND"); err != nil {
		return nil
	}
	for _, c := range v.Elems {
		if len(c.Elems) > 0 {
			all = append(all, command{name: strings.ToUpper(c.Elems[0].Str)})
		}
	}
	return all
}

// appendCommand appends a command and its subcommands.
func appendCommand(all []command, name string, doc resp.Value) []command {
	name = strings.ToUpper(strings.ReplaceAll(name, "|", " "))
	all = append(all, command{
		name: name, summary: field(doc, "summary"), since: field(doc, "since"),
		group: field(doc, "group"), complexity: field(doc, "complexity"), args: arguments(doc),
	})
	subs, _ := doc.Get("subcommands")
	for sub, d := range subs.Pairs {
		all = appendCommand(all, sub.Str, d)
	}
	return all
}

func arguments(doc resp.Value) []argument {
	list, _ := doc.Get("arguments")
	var args []argument
	for _, e := range list.Elems {
		a := argument{name: field(e, "display_text"), kind: field(e, "type"), token: field(e, "token"), args: arguments(e)}
		if a.name == "" {
			a.name = field(e, "name")
		}
		flags, _ := e.Get("flags")
		for _, f := range flags.Elems {
			switch f.Str {
			case "optional":
				a.optional = true
			case "multiple":
				a.multiple = true
			case "multiple_token":
				a.again = true
			}
		}
		args = append(args, a)
	}
	return args
}

func field(v resp.Value, name string) string {
	f, _ := v.Get(name)
	return f.Str
}

// find returns the command that words begin with, the longest name first, and
// how many words its name has; nil if there is none.
func find(all []command, words []string) (*command, int) {
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.ToUpper(strings.Join(words[:n], " "))
		i, ok := slices.BinarySearchFunc(all, name, func(c command, name string) int { return strings.Compare(c.name, name) })
		if ok {
			return &all[i], n
		}
	}
	return nil, 0
}
