package servercmd

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

// clientFilter selects the connections that CLIENT LIST shows and CLIENT KILL closes: those that pass every
// test. A repeated filter replaces the earlier one, except that ID and NOT-ID add their ids to the earlier
// ones.
type clientFilter struct {
	ids    map[string]map[int64]bool // of "ID" and "NOT-ID"
	tests  map[string]clientTest     // by the name of the filter
	skipMe bool

	badID   error // the error for an ID that is not a number
	oddID   error // the error for a word after an ID that is neither an ID nor a filter
	leastID int64 // a smaller number is not an ID
}

// clientTest reports whether a connection passes. now is us since 1970.
type clientTest func(x session.ClientInfo, now int64) bool

// These are the letters of flags that a client may have in CLIENT LIST, in ebb or in Valkey, and
// the capabilities.
const (
	clientFlags        = "ABEIMNOPRSTUbcdeijrtux"
	clientCapabilities = "r"
)

// clientFilters returns the arguments that CLIENT LIST and CLIENT KILL have in common, as in Valkey
// 9. The filters with NOT- are described only in words, so that the grammar stays readable.
func clientFilters() []command.Arg {
	return []command.Arg{
		command.Opt(command.TokenArg("FLAGS", command.Str("flags"))), command.Opt(command.TokenArg("NAME", command.Str("client-name"))),
		command.Opt(command.TokenArg("LIB-NAME", command.Str("library-name"))),
		command.Opt(command.TokenArg("LIB-VER", command.Str("library-version"))), command.Opt(command.TokenArg("DB", command.Int("db-id"))),
		command.Opt(command.TokenArg("CAPA", command.Str("capabilities"))),
		command.Opt(command.TokenArg("IP", command.Str("ip"))), command.Opt(command.TokenArg("IDLE", command.Int("seconds")))}
}

// clientFilterWords describes the filters on the pages of both commands.
const clientFilterWords = "A connection must pass all filters. ID and NOT-ID take several ids, and add up; of any other " +
	"filter the last one counts. MAXAGE and IDLE take those that are as old, or have been idle for as long, in seconds, or longer. FLAGS " +
	"takes those that have all the letters, as CLIENT LIST shows them. " +
	"All but SKIPME, MAXAGE and IDLE exist with NOT- before them (NOT-ID, NOT-NAME ...), and take those that the filter " +
	"without it does not take. An empty name takes no connection. No connection has a capability (CAPA)."

// parse reads the filters of a request.
func (f *clientFilter) parse(c *command.Ctx, args [][]byte) error {
	f.ids, f.tests = map[string]map[int64]bool{}, map[string]clientTest{}
	for len(args) > 0 {
		if len(args) < 2 {
			return command.ErrSyntax
		}
		name := strings.ToUpper(string(args[0]))
		if name == "ID" || name == "NOT-ID" {
			n, err := f.parseIDs(name, args[1:])
			if err != nil {
				return err
			}
			args = args[1+n:]
			continue
		}
		if err := f.option(c, name, args[1]); err != nil {
			return err
		}
		args = args[2:]
	}
	return nil
}

// parseIDs reads one or more numbers, and returns how many it has read.
func (f *clientFilter) parseIDs(name string, args [][]byte) (n int, err error) {
	if f.ids[name] == nil {
		f.ids[name] = map[int64]bool{}
	}
	for n < len(args) {
		id, ok := numeral.ParseInt(args[n])
		switch {
		case !ok && n > 0 && filterNamed(args[n]):
			return n, nil
		case !ok && n > 0:
			return 0, f.oddID
		case !ok, id < f.leastID:
			return 0, f.badID
		}
		f.ids[name][id] = true
		n++
	}
	return n, nil
}

// filterNamed reports whether a word names a filter.
func filterNamed(word []byte) bool {
	name := strings.ToUpper(string(word))
	base := strings.TrimPrefix(name, "NOT-")
	switch base {
	case "SKIPME", "MAXAGE", "IDLE":
		return base == name
	case "ID", "TYPE", "USER", "ADDR", "LADDR", "IP", "NAME", "LIB-NAME", "LIB-VER", "DB", "FLAGS", "CAPA":
		return true
	}
	return false
}

// option reads a filter that has one value.
func (f *clientFilter) option(c *command.Ctx, name string, value []byte) error {
	switch name {
	case "SKIPME":
		if !command.EqualFold(value, "YES") && !command.EqualFold(value, "NO") {
			return command.ErrSyntax
		}
		f.skipMe = command.EqualFold(value, "YES")
		return nil
	case "MAXAGE", "IDLE":
		seconds, ok := numeral.ParseInt(value)
		switch {
		case !ok:
			return command.ReplyError("ERR " + strings.ToLower(name) + " is not an integer or out of range")
		case seconds < 1:
			return command.ReplyError("ERR " + strings.ToLower(name) + " should be greater than 0")
		}
		f.tests[name] = func(x session.ClientInfo, now int64) bool {
			since := x.Created
			if name == "IDLE" {
				since = x.Active
				if x.ID == session.Of(c).ID() {
					since = now
				}
			}
			return (now-since)/1e6 >= seconds
		}
		return nil
	}
	test, err := clientProperty(c, name, string(value))
	if err != nil {
		return err
	}
	f.tests[name] = test
	return nil
}

// clientProperty returns a test of a property of a connection. For a NOT- filter it returns the
// negated test.
func clientProperty(c *command.Ctx, name, value string) (clientTest, error) {
	base, not := strings.CutPrefix(name, "NOT-")
	var has func(x session.ClientInfo) bool
	switch base {
	case "TYPE":
		kind, err := parseClientType([]byte(value))
		if err != nil {
			return nil, err
		}
		has = func(x session.ClientInfo) bool { return x.Type == kind }
	case "USER":
		user := session.ServiceOf(c).Accounts().Find(value)
		if user == nil {
			return nil, command.ReplyError("ERR No such user '" + value + "'")
		}
		has = func(x session.ClientInfo) bool { return x.User == user }
	case "ADDR":
		has = func(x session.ClientInfo) bool { return x.Addr == value }
	case "LADDR":
		has = func(x session.ClientInfo) bool { return x.LocalAddr == value }
	case "IP":
		has = func(x session.ClientInfo) bool { return value != "" && hostOf(x.Addr) == value }
	case "NAME":
		has = func(x session.ClientInfo) bool { return value != "" && x.Name == value }
	case "LIB-NAME":
		has = func(x session.ClientInfo) bool { return value != "" && x.Library[0] == value }
	case "LIB-VER":
		has = func(x session.ClientInfo) bool { return value != "" && x.Library[1] == value }
	case "DB":
		n, err := clientDB(c, name, value)
		if err != nil {
			return nil, err
		}
		has = func(x session.ClientInfo) bool { return int64(x.Database) == n }
	case "FLAGS":
		if strings.Trim(value, clientFlags) != "" {
			return nil, unknownLetters("flags", name, value)
		}
		has = func(x session.ClientInfo) bool { return hasLetters(x.Flags, value) }
	case "CAPA":
		if strings.Trim(value, clientCapabilities) != "" {
			return nil, unknownLetters("capa", name, value)
		}
		has = func(x session.ClientInfo) bool { return value == "" } // no connection has a capability
	default:
		return nil, command.ErrSyntax
	}
	return func(x session.ClientInfo, _ int64) bool { return has(x) != not }, nil
}

func clientDB(c *command.Ctx, name, value string) (int64, error) {
	n, ok := numeral.ParseInt([]byte(value))
	if !ok {
		return 0, command.ReplyError("ERR " + name + " is not an integer or out of range")
	}
	if last := session.ServiceOf(c).Config.Int("databases") - 1; n < 0 || n > last {
		return 0, command.ReplyError(fmt.Sprintf("ERR %s number should be between 0 and %d", name, last))
	}
	return n, nil
}

// unknownLetters returns the error about letters of a filter that no client can have.
func unknownLetters(what, name, value string) error {
	which := "provided"
	if strings.HasPrefix(name, "NOT-") {
		which = name
	}
	return command.ReplyError(cleantext.Reply("ERR Unknown " + what + " found in the " + which + " filter: " + value))
}

// hasLetters reports whether all letters are in set.
func hasLetters(set, letters string) bool {
	for _, l := range letters {
		if !strings.ContainsRune(set, l) {
			return false
		}
	}
	return true
}

// matches reports whether a connection passes at the instant now, in us since 1970.
func (f *clientFilter) matches(x session.ClientInfo, now int64) bool {
	if ids := f.ids["ID"]; ids != nil && !ids[x.ID] || f.ids["NOT-ID"][x.ID] {
		return false
	}
	for _, test := range f.tests {
		if !test(x, now) {
			return false
		}
	}
	return true
}

// hostOf returns an address without its port and without the brackets of IPv6.
func hostOf(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i >= 0 {
		addr = addr[:i]
	}
	return strings.TrimSuffix(strings.TrimPrefix(addr, "["), "]")
}
