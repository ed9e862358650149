package console

import (
	"strings"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/command"
)

// This file describes the users of the ACL in a form that a page can put into words.

// userRow is a user, without its passwords.
type userRow struct {
	Name      blob       `json:"name"`
	On        bool       `json:"on"`
	NoPass    bool       `json:"nopass"`
	Passwords int        `json:"passwords"`
	Rules     blob       `json:"rules"` // as ACL LIST prints them, without the hashes
	May       []grantRow `json:"may"`   // one of them must allow a request
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

// commandsRow has the commands that a selector allows: those of Whole and Some and More others; if But is
// set, all commands except those.
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

// leaves returns the commands that a user can have the permission for: no containers of subcommands, and no
// commands that run without a login.
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

// The bounds for the descriptions of commandsOf.
const (
	maxWhole    = 6 // categories
	maxSome     = 8 // commands by name
	minCategory = 4 // the least number of commands that a category must add: fewer are named singly
)

// commandsOf describes the commands of a selector in few words. It names whole categories, the one with the
// most commands first, and then single commands.
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

// biggest returns the category whose commands are all in the set in, and that has the most commands in left.
func biggest(in, left map[*command.Spec]bool, specs []*command.Spec) (name string, members []*command.Spec) {
	for bit, category := range command.CategoryNames() {
		if category == "fast" || category == "slow" { // they do not describe a command
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
