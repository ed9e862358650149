package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/migrate"
)

func migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move the data of running servers, a cluster or files to ebb, and back",
		Long: `Move the data of running servers to another server while clients write.

FROM is the URL of a master of Redis, Valkey or ebb, or of a cluster (redis+cluster://host:port). Several
masters are several FROM. ` + "`follow`" + ` also takes an RDB file, an append-only file or the directory of such files.
TO is the URL of one server. A URL may have a user and a password; REDISCLI_AUTH is the password of
URLs without one.

  ebb migrate check FROM TO      what does not fit, before anything happens
  ebb migrate follow FROM TO     copy, and keep equal while clients write
  ebb migrate verify FROM TO     compare values and deadlines
  ebb migrate cutover FROM TO    hold writes, wait for the last one, make TO a master
  ebb migrate back FROM TO       from ebb to redis-server: cutover, after a count of what that cannot hold

TO follows by replication where it can. Otherwise (a cluster, no PSYNC, --scan) ebb copies the keys with SCAN and
follows keyspace events.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 { // a misspelt step, for instance in a script
				return fmt.Errorf("ebb migrate has no step %q; want check, follow, verify, cutover or back", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Example: `  ebb migrate check redis://user:secret@old:6379 redis://new:6379
  ebb migrate cutover --compare redis://user:secret@old:6379 redis://new:6379
  ebb migrate cutover redis+cluster://node1:6379,node2:6379 redis://new:6379`,
	}
	for _, step := range migrationSteps() {
		cmd.AddCommand(migrateStep(step))
	}
	return cmd
}

// migrationStep is a subcommand of ebb migrate. flags lists its groups of flags.
type migrationStep struct {
	name, short, long string
	flags             string
	run               func(context.Context, *migrate.Migration, *cobra.Command) error
}

// migrationSteps returns the steps in order.
func migrationSteps() []migrationStep {
	return []migrationStep{
		{"check", "Examine whether data, commands and memory fit the target; change nothing", longCheck, "", checkMigration},
		{"follow", "Copy the data, and follow the source until Ctrl-C", longFollow, "copy once",
			func(ctx context.Context, m *migrate.Migration, _ *cobra.Command) error { return m.Follow(ctx) }},
		{"verify", "Compare values and deadlines of both sides, even while clients write", longVerify, "sample loss",
			func(ctx context.Context, m *migrate.Migration, _ *cobra.Command) error { return m.Verify(ctx) }},
		{"cutover", "Follow if necessary, hold the source's writes, and make the target a master", longCutover, "copy cut",
			func(ctx context.Context, m *migrate.Migration, _ *cobra.Command) error { return m.Cutover(ctx) }},
		{"back", "Move from ebb to redis-server: count what that cannot hold, follow and cut over", longBack, "copy cut loss",
			func(ctx context.Context, m *migrate.Migration, _ *cobra.Command) error { return m.Back(ctx) }},
	}
}

// The descriptions of the steps, for help and manual pages.
const (
	longCheck = `Compare versions, modules, the commands that clients have used (commandstats), memory,
databases and users with what TO has, and say what TO cannot hold. It reads FROM and TO, and
changes nothing. FROM may be a file, too.

Exit status: 0 ok, 1 look, 2 act, 3 if it could not check.`

	longFollow = `Copy all data to TO, which must be empty, and keep it equal while clients write. Where TO can
replicate it becomes a replica of FROM, and follows by itself after Ctrl-C: verify, cutover or
another follow continue there. Otherwise the keys are copied with SCAN, DUMP and RESTORE, and
then followed by keyspace events, until Ctrl-C.

FROM may be an RDB file, an append-only file or a directory with either, which is loaded once.`

	longVerify = `Read all keys of both sides with DUMP and compare the values and deadlines, streams with their
groups, the code of functions and expiry rules; and look for keys that only TO has. Clients may
write meanwhile: a key that differs is read again, up to eight times. FROM may be an RDB file.

Exit status: 0 if the data is equal, 1 if it differs or could not be compared.`

	longCutover = `Follow if TO does not yet, hold the writes of FROM (CLIENT PAUSE WRITE), wait until TO has the
last one, make TO a master, and print for what time the writes were held. If TO has not got
everything after 90 % of --pause, FROM accepts writes again, TO is not a master, and the exit
status is 1. Afterwards FROM holds writes until its pause ends: move the clients to TO, and
stop FROM, or let it follow TO with --reverse.`

	longBack = `Move from ebb to redis-server or Valkey. It counts first what TO cannot hold: limiters, locks,
semaphores, queues, filters, expiry rules, and deadlines of members, elements and fields. If
there is any it stops; with --accept-loss it moves the rest. Then it does what cutover does.`
)

// longestPause limits the time for which the source's writers hang if everything goes wrong.
const longestPause = time.Hour

// migrateStep returns the command of a step.
func migrateStep(step migrationStep) *cobra.Command {
	name, o := step.name, migrate.Options{}
	cmd := &cobra.Command{Use: name + " [flags] FROM... TO", Short: step.short, Long: step.long}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return cannot(cmd, name, fmt.Errorf("ebb migrate %s got %d argument(s); want FROM and TO, such as redis://old:6379 redis://new:6379",
				name, len(args)))
		}
		if pause := cmd.Flags().Lookup("pause"); pause != nil && (o.Pause < time.Millisecond || o.Pause > longestPause) {
			return fmt.Errorf("--pause is %v; want from 1ms to %v", o.Pause, longestPause)
		}
		return nil
	}
	f := cmd.Flags()
	f.StringVar(&o.CACert, "cacert", "", "file of the certificate authority for rediss URLs")
	f.BoolVar(&o.Scan, "scan", false, "copy keys with SCAN, even where TO could replicate")
	for _, group := range strings.Fields(step.flags) {
		switch group {
		case "copy":
			f.BoolVar(&o.Replace, "replace", false, "delete what TO holds")
		case "once":
			f.BoolVar(&o.Once, "once", false, "end when TO has caught up")
		case "sample":
			f.IntVar(&o.Sample, "sample", 0, "compare about this many keys (default: all)")
		case "cut":
			f.BoolVar(&o.Compare, "compare", false, "compare all data while writes are held, and cut over only if it is equal")
			f.DurationVar(&o.Pause, "pause", 10*time.Second, "longest time for which the source holds writes")
			f.BoolVar(&o.Reverse, "reverse", false, "afterwards the source follows TO, and can take over again")
		case "loss":
			f.BoolVar(&o.AcceptLoss, "accept-loss", false, "accept that redis-server cannot hold everything that ebb has")
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.From, o.To = args[:len(args)-1], args[len(args)-1]
		o.Out, o.Password = cmd.OutOrStdout(), os.Getenv("REDISCLI_AUTH")
		o.Live = cmd.OutOrStdout() == os.Stdout && progress(false) != nil
		return interruptible(cmd, func(ctx context.Context) error {
			m, err := migrate.Open(ctx, o)
			if err != nil {
				return cannot(cmd, name, err)
			}
			defer m.Close()
			return cannot(cmd, name, step.run(ctx, m, cmd))
		})
	}
	return cmd
}

// cannot converts an error of check to the status 3, because 1 and 2 are those of findings.
func cannot(cmd *cobra.Command, name string, err error) error {
	var status exitStatus
	if err == nil || name != "check" || errors.As(err, &status) {
		return err
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "ebb: %v\n", err)
	return exitStatus(3)
}

func checkMigration(ctx context.Context, m *migrate.Migration, cmd *cobra.Command) error {
	found, err := m.Check(ctx)
	if err != nil {
		return err
	}
	if err := doctor.Print(cmd.OutOrStdout(), found); err != nil {
		return err
	}
	if worst := doctor.Worst(found); worst > doctor.OK {
		return exitStatus(worst)
	}
	return nil
}
