package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// measurement is a subcommand of `ebb bench` that prepares a server, puts a load on it, and prints the latency of its
// clients. Every measurement deletes the server's keys.
type measurement struct {
	use, short, long string
	common           *loadgen.Common // points into the configuration that run uses
	pid              string          // the quantity that --pid measures; "": there is no --pid
	keeps            bool            // there is no --flush
	flags            func(*pflag.FlagSet)
	run              func(ctx context.Context) error
}

func measurements() []measurement {
	return []measurement{storm(), prompt(), durableEvents(), churn(), types(), scripts(), timed(), bombs(), drop(),
		line(), due(), waiters(), cache(), acked()}
}

// command returns the subcommand. Every subcommand has the flags that name a server, --flush and --quiet.
func (m measurement) command() *cobra.Command {
	cmd := &cobra.Command{Use: m.use, Short: m.short, Long: m.long, Args: cobra.NoArgs}
	f := cmd.Flags()
	server := serverFlags(f)
	quiet := f.BoolP("quiet", "q", false, "no progress line")
	if m.pid != "" {
		f.IntVar(&m.common.PID, "pid", 0, "process id of the server, to measure its "+m.pid)
	}
	if !m.keeps {
		flushFlag(f, &m.common.Flush)
	}
	m.flags(f)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := server()
		if err != nil {
			return err
		}
		m.common.Target, m.common.Out, m.common.Progress = target, cmd.OutOrStdout(), progress(*quiet)
		return interruptible(cmd, m.run)
	}
	return cmd
}

// flushFlag adds --flush.
func flushFlag(f *pflag.FlagSet, p *bool) {
	f.BoolVar(p, "flush", false, "delete all keys of the server first")
}

func storm() measurement {
	var cfg loadgen.StormConfig
	return measurement{
		use: "storm", short: "Latency while millions of items expire in one instant",
		long: `Load items that all expire in one instant and measure what that costs the
server's other clients: the latency of GETs before, during and after, how long
until everything is reclaimed, CPU and memory. Deletes all keys of the server.`,
		common: &cfg.Common, pid: "CPU and memory",
		flags: func(f *pflag.FlagSet) {
			f.IntVarP(&cfg.Items, "items", "n", 3_000_000, "items that expire together")
			f.StringVar(&cfg.Kind, "kind", "", "what the items are: key, field, member (of sets), zmember (of sorted sets) or "+
				"element (of lists) (default key)")
			f.IntVar(&cfg.Fields, "fields", 0, "put the items into containers of this many, each item with its own deadline (default 1000)")
			f.IntVar(&cfg.Rate, "rate", 5000, "GETs a second, open loop")
			f.DurationVar(&cfg.Lead, "lead", 0, "from the start of loading to the deadline (default: a guess)")
			f.DurationVar(&cfg.Tail, "tail", time.Minute, "longest wait for the last item")
		},
		run: func(ctx context.Context) error { return loadgen.Storm(ctx, cfg) },
	}
}

func durableEvents() measurement {
	var cfg loadgen.EventsConfig
	return measurement{
		use: "events", short: "Durable expiry events: entries, duplicates, lateness",
		long: `Set an EXPIRY RULE, load keys whose deadlines are spread over some seconds, and
have a consumer group read the rule's stream meanwhile: entries against expiries,
duplicates, and the time from deadline to delivery. Deletes all keys of the server.`,
		common: &cfg.Common, pid: "CPU",
		flags: func(f *pflag.FlagSet) {
			f.IntVarP(&cfg.Items, "items", "n", 1_000_000, "keys that expire")
			f.DurationVar(&cfg.Spread, "spread", 10*time.Second, "the span of their deadlines")
			f.IntVarP(&cfg.Consumers, "consumers", "c", 4, "consumers of the group")
			f.IntVar(&cfg.Rate, "rate", 5000, "GETs per second meanwhile, open loop")
			f.DurationVar(&cfg.Lead, "lead", 0, "from the start of loading to the first deadline (default: a guess)")
		},
		run: func(ctx context.Context) error { return loadgen.Events(ctx, cfg) },
	}
}

func waiters() measurement {
	var cfg loadgen.WaitersConfig
	return measurement{
		use: "waiters", short: "Clients that wait in one line for a lock or a limiter",
		long: `Have clients wait in one line with LOCK.ACQUIRE, or with RL.WAIT, cut some of their
connections before the line moves and some while it does, and compare the order of
the grants with the line that LOCK.INFO or RL.INFO showed. Deletes all keys of the
server, which must allow more connections than there are clients (maxclients).`,
		common: &cfg.Common,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&cfg.Limiter, "limiter", false, "wait for a limiter (default: for a lock)")
			f.IntVarP(&cfg.Clients, "clients", "c", 10_000, "connections")
			f.IntVar(&cfg.Cut, "cut", 0, "connections to cut (default: a third)")
		},
		run: func(ctx context.Context) error { return loadgen.Waiters(ctx, cfg) },
	}
}

func prompt() measurement {
	var cfg loadgen.PromptConfig
	return measurement{
		use: "prompt", short: "How late the server's expired events are",
		long: `Create keys with one deadline that nothing reads, and measure how late their
expired events come while other keys carry a TTL of an hour. Deletes all keys of
the server, and switches its keyspace events on meanwhile.`,
		common: &cfg.Common,
		flags: func(f *pflag.FlagSet) {
			f.IntVar(&cfg.Background, "bg", 0, "other keys with a TTL of an hour")
			f.IntVarP(&cfg.Probes, "probes", "n", 1000, "keys whose events are awaited")
			f.DurationVar(&cfg.Wait, "wait", 30*time.Second, "longest wait for the last event")
		},
		run: func(ctx context.Context) error { return loadgen.Prompt(ctx, cfg) },
	}
}

func churn() measurement {
	var cfg loadgen.ChurnConfig
	return measurement{
		use: "churn", short: "Memory while everything is overwritten again and again",
		long: `Overwrite keys at random with values of random sizes and random TTLs, so that
the living bytes stay about the same, and print the server's used and resident
memory. Deletes all keys of the server.`,
		common: &cfg.Common, pid: "memory",
		flags: func(f *pflag.FlagSet) {
			f.IntVarP(&cfg.Keys, "keys", "r", 300_000, "different keys")
			f.IntVar(&cfg.MinSize, "min", 10, "bytes of the smallest value")
			f.IntVar(&cfg.MaxSize, "max", 2000, "bytes of the largest value")
			f.DurationVarP(&cfg.Duration, "duration", "d", 0, "how long (default 10m)")
			f.DurationVar(&cfg.Every, "every", 0, "between two lines (default 30s)")
		},
		run: func(ctx context.Context) error { return loadgen.Churn(ctx, cfg) },
	}
}

func types() measurement {
	return comparison("types", "Compare two servers over the commands of all data types",
		`Repeat commands of all data types on this server and on the one of --against, in
turn, and print throughput and CPU per operation with their ratios: medians of
the rounds. Deletes all keys of both servers.`, loadgen.TypesConfig{})
}

func scripts() measurement {
	return comparison("scripts", "Compare two servers over Lua scripts",
		`Repeat Lua scripts of four kinds on this server and on the one of --against, in
turn, and print throughput and CPU per call with their ratios: medians of the
rounds. Deletes all keys of both servers.`, loadgen.TypesConfig{Scripts: true})
}

func timed() measurement {
	return comparison("timed", "Compare limiters, locks and delay queues with scripts for the same job",
		`Repeat ebb's own commands on this server, and on the server of --against the scripts
that do the same, in turn, and print throughput and CPU per operation with their
ratios: medians of the rounds. LOCK.* is an acquire and a release, DQ.POP+ACK a
delivery and its acknowledgement. Deletes all keys of both servers.`, loadgen.TypesConfig{Timed: true})
}

func comparison(use, short, long string, cfg loadgen.TypesConfig) measurement {
	cfg.Ours, cfg.Theirs = loadgen.Side{Name: "ebb"}, loadgen.Side{Name: "redis"}
	var against string
	var common loadgen.Common
	return measurement{
		use: use, short: short, long: long, common: &common, pid: "CPU",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&against, "against", "127.0.0.1:7000", "address of the other server")
			f.IntVar(&cfg.Theirs.PID, "against-pid", 0, "process id of the other")
			f.IntVarP(&cfg.Clients, "clients", "c", 50, "connections")
			f.IntVarP(&cfg.Pipeline, "pipeline", "P", 32, "requests in flight per connection")
			f.DurationVarP(&cfg.Duration, "duration", "d", 0, "of each measurement (default 2s)")
			f.IntVar(&cfg.Rounds, "rounds", 3, "measurements of each command")
			f.StringVarP(&cfg.Only, "tests", "t", "", "what to compare, by name (default: all)")
		},
		run: func(ctx context.Context) error {
			cfg.Ours.Target, cfg.Ours.PID, cfg.Theirs.Target = common.Target, common.PID, loadgen.Target{Addr: against}
			cfg.Flush, cfg.Out, cfg.Progress = common.Flush, common.Out, common.Progress
			return loadgen.Types(ctx, cfg)
		},
	}
}

func bombs() measurement {
	var cfg loadgen.BombsConfig
	return measurement{
		use: "bombs", short: "Latency and memory while scripts run wild",
		long: `Run scripts that loop for ever or allocate without limit, kill those that do
not end by themselves, and print the latency of other clients meanwhile, how much memory
the server took, and how each script ended.`,
		common: &cfg.Common, pid: "memory", keeps: true,
		flags: func(f *pflag.FlagSet) {
			f.IntVar(&cfg.Rate, "rate", 2000, "GETs a second, open loop")
			f.DurationVar(&cfg.Patience, "patience", 2*time.Second, "time after which a script is killed")
			f.DurationVar(&cfg.Threshold, "threshold", 500*time.Millisecond, "busy-reply-threshold")
			f.StringVarP(&cfg.Only, "tests", "t", "", "scripts to run, by name (default: all)")
		},
		run: func(ctx context.Context) error { return loadgen.Bombs(ctx, cfg) },
	}
}

func drop() measurement {
	var cfg loadgen.DropConfig
	return measurement{
		use: "drop", short: "Latency while large containers are renamed, deleted and expire",
		long: `Load a hash, a set, a sorted set, a list and a stream, rename each, delete it, and
let it expire, and measure the latency of other clients' GETs. Deletes all keys of
the server.`,
		common: &cfg.Common, pid: "memory",
		flags: func(f *pflag.FlagSet) {
			f.IntVarP(&cfg.Elements, "elements", "n", 5_000_000, "elements of each container")
			f.IntVar(&cfg.Rate, "rate", 5000, "GETs a second, open loop")
		},
		run: func(ctx context.Context) error { return loadgen.Drop(ctx, cfg) },
	}
}

func line() measurement {
	var cfg loadgen.LineConfig
	return measurement{
		use: "line", short: "Order and latency of clients that wait with BLPOP or ZPOPDUE",
		long: `Have clients wait in line with BLPOP, or with ZPOPDUE for jobs of a sorted set, push
elements, and print whether they were served in the order in which they came, and how
long after the push. Deletes all keys of the server.`,
		common: &cfg.Common,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&cfg.Due, "due", false, "wait with ZPOPDUE (default: with BLPOP)")
			f.IntVarP(&cfg.Clients, "clients", "c", 1000, "connections that wait")
			f.IntVar(&cfg.Rounds, "rounds", 10, "pushes for each of them")
		},
		run: func(ctx context.Context) error { return loadgen.Line(ctx, cfg) },
	}
}

func due() measurement {
	var cfg loadgen.DueConfig
	return measurement{
		use: "due", short: "How late jobs of sorted sets are taken",
		long: `Have clients take jobs from sorted sets whose scores are times, and print how long
after its time each job was taken, and how many commands the clients send with and without jobs. The clients
wait with ZPOPDUE BLOCK; or they wait with its PEEK, and then take the job by a script, as programs do whose
scripts move jobs; or they look into all sets in intervals with that script, as on a server without the command.
Deletes all keys of the server.`,
		common: &cfg.Common, pid: "CPU",
		flags: func(f *pflag.FlagSet) {
			f.IntVarP(&cfg.Sets, "sets", "n", 1000, "sorted sets, each with a job a second")
			f.IntVarP(&cfg.Clients, "clients", "c", 50, "connections that share the sets")
			f.DurationVar(&cfg.Poll, "poll", 0, "look in this interval (default: wait with ZPOPDUE)")
			f.BoolVar(&cfg.Peek, "peek", false, "wait with ZPOPDUE PEEK, and take the job by a script")
			f.DurationVarP(&cfg.Duration, "duration", "d", 20*time.Second, "time in which jobs fall due")
			f.DurationVar(&cfg.Idle, "idle", 5*time.Second, "time without jobs before that")
		},
		run: func(ctx context.Context) error { return loadgen.Due(ctx, cfg) },
	}
}

func cache() measurement {
	var cfg loadgen.CacheConfig
	return measurement{
		use: "cache", short: "Hit ratio and memory of the eviction policies",
		long: `Read keys by a Zipf distribution, write missing keys, and print the hit ratio
and the memory that the server holds at --maxmemory under each eviction policy.
Deletes all keys of the server.`,
		common: &cfg.Common, pid: "memory",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&cfg.MaxMemory, "maxmemory", "256mb", "limit to set")
			f.StringVar(&cfg.Policies, "policies", "", "policies to try (default: all)")
			f.IntVarP(&cfg.Keys, "keys", "r", 2_000_000, "different keys")
			f.IntVar(&cfg.Size, "size", 200, "bytes of a value")
			f.Float64Var(&cfg.Skew, "skew", 1.01, "of the Zipf distribution")
			f.DurationVarP(&cfg.Duration, "duration", "d", 0, "for each policy (default 15s)")
		},
		run: func(ctx context.Context) error { return loadgen.Cache(ctx, cfg) },
	}
}

func acked() measurement {
	var cfg loadgen.AckedConfig
	var against string
	return measurement{
		use: "acked", short: "Writes that a group acknowledges, beside SET with WAIT",
		long: `Repeat SET on the master of a group, whose replies are acknowledgements, and on the
servers of --against, where WAIT follows, in turn: with one connection, with 50, and
with 50 that have 32 requests in flight. Print throughput and latency: medians of the
rounds, and the group's throughput against each. Deletes all keys of all servers.`,
		common: &cfg.Common,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&against, "against", "", "masters with replicas, as redis=127.0.0.1:7000,valkey=127.0.0.1:7001")
			f.StringVar(&cfg.Alone.Addr, "alone", "", "address of a server without replicas, for comparison")
			f.DurationVarP(&cfg.Length, "duration", "d", 0, "of each measurement (default 2s)")
			f.IntVar(&cfg.Rounds, "rounds", 7, "measurements of each")
		},
		run: func(ctx context.Context) error {
			cfg.Against = nil
			for a := range strings.FieldsFuncSeq(against, func(r rune) bool { return r == ',' }) {
				name, addr, ok := strings.Cut(a, "=")
				if !ok {
					return fmt.Errorf("--against has %q: want a name and an address, as redis=127.0.0.1:7000", a)
				}
				cfg.Against = append(cfg.Against, loadgen.Side{Name: name, Target: loadgen.Target{Addr: addr}})
			}
			return loadgen.Acked(ctx, cfg)
		},
	}
}
