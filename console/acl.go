package console

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/command"
)

// This file describes the users of the ACL in a form that a page can put into words, and reads the ACL log.

// userRow is a user, without its passwords.
type userRow struct {
	Name      blob       `json:"name"`
	On        bool       `json:"on"`
	NoPass    bool       `json:"nopass"`
	Passwords int        `json:"passwords"`
	Rules     blob       `json:"rules"` // as ACL LIST prints them, without the hashes
	May       []grantRow `json:"may"`   // a request must be allowed by one of them
}

// grantRow has the permissions of one selector of a user.
type grantRow struct {
	Commands commandsRow `json:"commands"`
	Keys     struct {
		All   bool   `json:"all"`
		Read  []blob `json:"read"`
		Write []blob `json:"write"`
		Both  []blob `json:"both"`
	} `json:"keys"`
	Channels struct {
		All      bool   `json:"all"`
		Patterns []blob `json:"patterns"`
	} `json:"channels"`
}

// commandsRow has the commands that a selector allows: those of Whole and Some and More others, or all but those if But is set.
type commandsRow struct {
	Runs      int      `json:"runs"`
	Of        int      `json:"of"`
	Writes    int      `json:"writes"`
	Dangerous int      `json:"dangerous"`
	But       bool     `json:"but,omitempty"`
	Whole     []string `json:"whole"` // categories
	Some      []string `json:"some"`  // commands
	More      int      `json:"more"`
}

// getACL answers GET api/acl: the users, for viewers who may run ACL LIST.
func getACL(k *call, _ *request) (any, error) {
	out := struct {
		Me     blob      `json:"me"`
		Users  []userRow `json:"users"`
		Denied []string  `json:"denied,omitempty"`
	}{Me: bytesOf(k.v.id.Name()), Users: []userRow{}}
	if !k.allowed([][]byte{[]byte("ACL"), []byte("LIST")}) {
		out.Denied = k.denied
		return out, nil
	}
	specs := leaves(k.c.svc.Table())
	for _, acc := range k.c.svc.Accounts().List() {
		u := acc.User()
		row := userRow{Name: bytesOf(u.Name), On: u.On, NoPass: u.NoPass, Passwords: len(u.Passwords()), May: []grantRow{}}
		words := u.Flags()
		for i := range u.Selectors() {
			s := &u.Selectors()[i]
			text := s.String()
			if i > 0 {
				text = "(" + text + ")"
			}
			words = append(words, text)
			row.May = append(row.May, grantOf(s, specs))
		}
		row.Rules = bytesOf(strings.Join(words, " "))
		out.Users = append(out.Users, row)
	}
	return out, nil
}

// leaves returns the commands that a user can have the permission for: no containers of subcommands, and none that runs without
// a login.
func leaves(t *command.Table) []*command.Spec {
	var out []*command.Spec
	for id := range t.Len() {
		if s := t.Spec(id); s.Run != nil && !s.Has(command.NoAuth) && (s.Parent() != nil || s.Called() != "") {
			out = append(out, s)
		}
	}
	return out
}

func grantOf(s *acl.Selector, specs []*command.Spec) grantRow {
	g := grantRow{Commands: commandsOf(s, specs)}
	g.Keys.Read, g.Keys.Write, g.Keys.Both, g.Channels.Patterns = []blob{}, []blob{}, []blob{}, []blob{}
	g.Keys.All, g.Channels.All = s.AllKeys(), s.AllChannels()
	if !g.Keys.All {
		for rule := range strings.SplitSeq(s.Keys(), " ") { // a pattern has no space
			switch how, pattern, _ := strings.Cut(rule, "~"); {
			case rule == "":
			case how == "%R":
				g.Keys.Read = append(g.Keys.Read, bytesOf(pattern))
			case how == "%W":
				g.Keys.Write = append(g.Keys.Write, bytesOf(pattern))
			default:
				g.Keys.Both = append(g.Keys.Both, bytesOf(pattern))
			}
		}
	}
	if !g.Channels.All {
		for rule := range strings.SplitSeq(s.Channels(), " ") {
			if rule != "" {
				g.Channels.Patterns = append(g.Channels.Patterns, bytesOf(rule[1:]))
			}
		}
	}
	return g
}

// The bounds of how commandsOf describes a set of commands.
const (
	maxWhole    = 6 // categories
	maxSome     = 8 // commands by name
	minCategory = 4 // commands that a category must add: fewer are named
)

// commandsOf describes the commands of a selector in few words. It names whole categories, that of most commands first, and then
// single commands.
func commandsOf(s *acl.Selector, specs []*command.Spec) commandsRow {
	row := commandsRow{Of: len(specs), Whole: []string{}, Some: []string{}}
	in := map[*command.Spec]bool{}
	for _, spec := range specs {
		if !s.MayRun(spec.ID(), nil) {
			continue
		}
		in[spec] = true
		row.Runs++
		if spec.Has(command.Write) {
			row.Writes++
		}
		if spec.ACL()&command.CatDangerous != 0 {
			row.Dangerous++
		}
	}
	if row.Runs == 0 || row.Runs == row.Of {
		return row
	}
	if row.But = row.Runs > row.Of/2; row.But {
		for _, spec := range specs {
			in[spec] = !in[spec]
		}
	}
	left := map[*command.Spec]bool{}
	for _, spec := range specs {
		if in[spec] {
			left[spec] = true
		}
	}
	for len(row.Whole) < maxWhole {
		name, members := biggest(in, left, specs)
		if len(members) < minCategory {
			break
		}
		row.Whole = append(row.Whole, name)
		for _, spec := range members {
			delete(left, spec)
		}
	}
	for _, spec := range specs {
		if !left[spec] {
			continue
		}
		if len(row.Some) == maxSome {
			row.More++
			continue
		}
		row.Some = append(row.Some, display(spec))
	}
	return row
}

// biggest returns the category whose commands are all in a set and that has most of those that are left.
func biggest(in, left map[*command.Spec]bool, specs []*command.Spec) (name string, members []*command.Spec) {
	for bit, category := range command.CategoryNames() {
		if category == "fast" || category == "slow" { // they say nothing about what a command does
			continue
		}
		var mine []*command.Spec
		whole := true
		for _, spec := range specs {
			if spec.ACL()&(1<<bit) == 0 {
				continue
			}
			if whole = in[spec]; !whole {
				break
			}
			if left[spec] {
				mine = append(mine, spec)
			}
		}
		if whole && len(mine) > len(members) {
			name, members = category, mine
		}
	}
	return name, members
}

// aclLogRow is an entry of the ACL log: requests that were refused, and failed logins.
type aclLogRow struct {
	ID      int64  `json:"id"`
	Count   int64  `json:"count"`
	Reason  string `json:"reason"`
	Context string `json:"context"`
	Object  blob   `json:"object"`
	User    blob   `json:"user"`
	First   int64  `json:"first"` // ms since 1970
	Last    int64  `json:"last"`
	Addr    string `json:"addr"`
	Name    blob   `json:"name"`
}

// aclLogRows is the number of entries that a page gets.
const aclLogRows = 128

// getACLLog answers GET api/acllog.
func getACLLog(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "ACL", "LOG", aclLogRows)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	rows := []aclLogRow{}
	for _, e := range v.Elems {
		row := aclLogRow{ID: member(e, "entry-id").Int, Count: member(e, "count").Int, Reason: member(e, "reason").Str, Context: member(e, "context").Str,
			Object: nameOf(member(e, "object")), User: nameOf(member(e, "username")), First: member(e, "timestamp-created").Int,
			Last: member(e, "timestamp-last-updated").Int}
		if client := parseClients(member(e, "client-info").Str); len(client) > 0 {
			row.Addr, row.Name = client[0].Addr, bytesOf(client[0].Name)
		}
		rows = append(rows, row)
	}
	return struct {
		Rows   []aclLogRow `json:"rows"`
		Denied []string    `json:"denied,omitempty"`
	}{rows, slices.Clone(k.denied)}, nil
}
