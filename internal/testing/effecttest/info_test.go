package effecttest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// absent are the fields, and beginnings of fields, that a server's INFO has and ebb's has not, and why.
var absent = map[string]string{
	"db0_distrib_":                        "no histogram of sizes is kept; ebb cli --bigkeys and --memkeys find them",
	"allocator_muzzy":                     "jemalloc's",
	"mem_overhead_db_hashtable_rehashing": "a table of ebb grows by single buckets",
	"mem_replica_full_sync_buffer":        "a full synchronisation has one connection",
	"mem_replicas_repl_buffer":            "a full synchronisation has one connection",
	"replicas_waiting_psync":              "a full synchronisation has one connection",
	"eventloop_":                          "network loops do not time their turns",
	"instantaneous_eventloop_":            "network loops do not time their turns",
	"used_active_time_main_thread":        "there is no main thread",
	"io_thread_":                          "network loops are not threads for input and output alone",
	"io_threaded_":                        "network loops are not threads for input and output alone",
	"clients_hz":                          "there is no cycle over clients",
	"module":                              "there are no modules",
	"valkey_":                             "ebb is not Valkey",
	"server_mode":                         "ebb has Redis's name, redis_mode",
	"engine_":                             "there are no modules that bring languages",
	"engines_":                            "there are no modules that bring languages",
	"mem_cluster_slot_":                   "there are no other nodes",
	"slot_migration_":                     "there are no other nodes",
	"total_net_cluster_slot_":             "there are no other nodes",
	"tls_":                                "certificates are not looked into",
	"acl_access_denied_tls_cert":          "a certificate names no user",
	"acl_access_denied_db":                "rules of users know no databases",
	"expired_keys_with_volatile_items_stale_perc": "deadlines of keys and of items are counted together, in expired_stale_perc",
}

// absentSections lists the sections that a server has and ebb does not.
var absentSections = map[string]string{
	"Threads":           "network loops are not threads for input and output alone",
	"Keysizes":          "no histogram of sizes is kept; ebb cli --bigkeys and --memkeys find them",
	"TLS":               "certificates are not looked into",
	"Cluster Info":      "there are no other nodes",
	"Scripting Engines": "there are no modules that bring languages",
}

// fieldKinds are the kinds of values that clients parse, the most particular first.
var fieldKinds = []struct {
	name string
	form *regexp.Regexp
}{
	{"a whole number", regexp.MustCompile(`^-?\d+$`)},
	{"a decimal", regexp.MustCompile(`^-?\d+\.\d+$`)},
	{"a percentage", regexp.MustCompile(`^-?\d+\.\d+%$`)},
	{"a size", regexp.MustCompile(`^\d+(\.\d+)?[BKMGTP]$`)},
	{"pairs", regexp.MustCompile(`^\w[\w.]*=[^,]*(,\w[\w.]*=[^,]*)*$`)},
	{"a text", regexp.MustCompile(``)},
}

func fieldKind(value string) string {
	for _, k := range fieldKinds {
		if k.form.MatchString(value) {
			return k.name
		}
	}
	return ""
}

// prefixed looks a name up, or the longest beginning of it.
func prefixed(table map[string]string, name string) string {
	for i := len(name); i > 0; i-- {
		if why := table[name[:i]]; why != "" && (i == len(name) || strings.HasSuffix(name[:i], "_")) {
			return why
		}
	}
	return ""
}

// parseInfo returns the sections in order, and the fields.
func parseInfo(t *testing.T, addr string) (order []string, fields map[string]string) {
	t.Helper()
	fields = map[string]string{}
	p := infoPlayer(t, addr)
	for _, line := range []string{"SET k v EX 100", "NOSUCH", "PING", "INFO everything"} {
		if err := p.quiet("", line); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.leave("", "")
	for line := range strings.SplitSeq(p.last, "\r\n") {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			order = append(order, title)
		} else if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return order, fields
}

// Every field of INFO that the servers have is there with a value of the same kind, in
// sections of the same names and order.
func TestInfoHasTheFieldsOfTheServers(t *testing.T) {
	ebb := realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "no")
	ebb.Start()
	ourOrder, ours := parseInfo(t, ebb.Addr())
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			order, theirs := parseInfo(t, realserver.Start(t, program))
			same, missing := 0, 0
			for name, value := range theirs {
				if strings.HasPrefix(name, "cmdstat_") || strings.HasPrefix(name, "latency_percentiles_") || name == "redis_build_id" {
					continue // one for each command that was called; a text that may be all digits
				}
				mine, ok := ours[name]
				switch why := prefixed(absent, name); {
				case !ok && why == "":
					t.Errorf("%s:%s is missing", name, value)
				case !ok:
					missing++
				case mine == "" || value == "": // a text that may be empty
					same++
				case fieldKind(mine) != fieldKind(value):
					t.Errorf("%s is %s, %q; on %s %s, %q", name, fieldKind(mine), mine, program, fieldKind(value), value)
				default:
					same++
				}
			}
			at := 0
			for _, title := range order {
				if absentSections[title] != "" {
					continue
				}
				for at < len(ourOrder) && ourOrder[at] != title {
					at++
				}
				if at == len(ourOrder) {
					t.Errorf("the section %s is missing, or stands too early: %v, on %s %v", title, ourOrder, program, order)
				}
			}
			t.Logf("fields of INFO: %d of %d are there, %d are not, for a reason", same, len(theirs), missing)
		})
	}
	for _, name := range []string{"maxmemory", "tcp_port"} {
		if fieldKind(ours[name]) != "a whole number" {
			t.Errorf("%s is %q", name, ours[name])
		}
	}
}
