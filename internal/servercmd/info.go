package servercmd

import (
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/session"
)

var specInfo = command.Spec{
	Name: "info", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Returns information and statistics about the server.",
	Flags:      command.Loading | command.Stale | command.SelfLock | command.OfServer | command.Inert,
	FanOut:     command.FanOutOne,
	Categories: command.CatDangerous,
	Tips:       []string{"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
	Args:       []command.Arg{command.Opt(command.Many("section"))},
	History:    []command.Change{{Since: "7.0.0", Text: "Added support for taking multiple section arguments."}},
	Replies: "Lines of name:value under headings. Without a section, or for `default`, all but commandstats and latencystats; " +
		"for `all` and `everything` these as well. Unknown sections are left out.",
	Examples: `
> INFO cluster
"# Cluster\r\ncluster_enabled:0\r\n"
> SET k v
OK
> INFO keyspace
"# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n"
`,
	Run: runInfo,
}

func runInfo(c *command.Ctx) error {
	wanted := map[string]bool{}
	for _, a := range c.Args[1:] {
		wanted[strings.ToLower(string(a))] = true
	}

	c.Out.Verbatim("txt", session.ServiceOf(c).Admin().Info(c.Tx, c.Now(), wanted))
	return nil
}
