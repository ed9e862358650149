package gen

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
)

// The commands of the servers that ebb is compared with, a line each, as COMMAND tells them.
//
//go:embed redis70.txt
var redis70 string

//go:embed redis80.txt
var redis80 string

//go:embed valkey91.txt
var valkey91 string

// servers are the lists with the servers' names.
var servers = []struct{ name, commands string }{{"Redis 7.0.15", redis70}, {"Redis 8.0.6", redis80}, {"Valkey 9.1.2", valkey91}}

const (
	vectors   = "ebb has no vector sets; in Redis they come as a module that is built in"
	migration = "one node has no slots to move"
)

// reasons say why a command of these servers is not there. A name stands for its
// subcommands too.
var reasons = map[string]string{
	"cluster|myshardid":            "one node is one shard, and CLUSTER SHARDS names it",
	"cluster|slot-stats":           "ebb counts nothing by slot; CLUSTER COUNTKEYSINSLOT counts keys",
	"cluster|flushslot":            migration,
	"cluster|migrateslots":         migration,
	"cluster|getslotmigrations":    migration,
	"cluster|cancelslotmigrations": migration,
	"cluster|syncslots":            migration,
	"clusterscan":                  "SCAN walks over one node",
	"commandlog":                   "SLOWLOG has the slow commands; ebb keeps no log of large requests and replies",
	"client|capa":                  "the only capability is redirect, and ebb redirects no client of a replica",
	"client|import-source":         "there is no import mode; RESTORE and the tools of ebb load data",
	"vadd":                         vectors, "vcard": vectors, "vdim": vectors, "vemb": vectors, "vgetattr": vectors,
	"vinfo": vectors, "vismember": vectors, "vlinks": vectors, "vrandmember": vectors, "vrem": vectors, "vsetattr": vectors, "vsim": vectors,
}

func reasonFor(name string) string {
	head, _, _ := strings.Cut(name, "|")
	if r := reasons[name]; r != "" {
		return r
	}
	return reasons[head]
}

// Missing lists the commands of a server, as its list has them, that a table does not
// have, and of these the ones without a reason.
func Missing(commands string, t *command.Table) (missing, unexplained []string) {
	have := map[string]bool{}
	for id := range t.Len() {
		have[t.Spec(id).Name] = true
	}
	for name := range strings.FieldsSeq(commands) {
		if have[name] {
			continue
		}
		missing = append(missing, name)
		if reasonFor(name) == "" {
			unexplained = append(unexplained, name)
		}
	}
	return missing, unexplained
}

// writeMissing writes the section on what the servers have besides.
func writeMissing(b *bytes.Buffer, t *command.Table) {
	b.WriteString("\n## What Redis and Valkey have and ebb does not\n\nSubcommands are counted.\n\n| Server | Commands " +
		"| In ebb |\n|---|---|---|\n")
	from := map[string][]string{}
	for _, s := range servers {
		missing, _ := Missing(s.commands, t)
		all := len(strings.Fields(s.commands))
		fmt.Fprintf(b, "| %s | %d | %d |\n", s.name, all, all-len(missing))
		for _, name := range missing {
			from[name] = append(from[name], s.name)
		}
	}
	b.WriteString("\n| Command | Of | Why not |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(from)) {
		fmt.Fprintf(b, "| %s | %s | %s |\n", strings.ToUpper(strings.ReplaceAll(name, "|", " ")), strings.Join(from[name], ", "), reasonFor(name))
	}
}
