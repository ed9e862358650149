package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/queue"
)

// queueCommand shows and manages queues of package queue, on ebb and on other servers, by calls of that package.
func queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Inspect queues, pause them, run jobs again or remove them",
		Long: `Look at the queues of package queue and of DQ.*, pause them, run jobs again or remove them.
On Redis and Valkey it works with the keys that package queue keeps there.`,
		Example: `  ebb queue list
  ebb queue peek mail --state leased
  ebb queue pause mail --for 10m
  ebb queue requeue mail order-7 order-8
  ebb queue reschedule mail order-9 --in 2h
  ebb queue schedules reports -u redis://host:6379`,
	}
	cmd.AddCommand(queueList(), queuePeek(), queuePause(), queueResume(), queueRequeue(), queueReschedule(), queueCancel(), queueSchedules(),
		queueUnschedule())
	return cmd
}

// queueAction returns a command that connects to the server and runs do.
func queueAction(cmd *cobra.Command, do func(ctx context.Context, c *conn.Conn, out io.Writer, args []string) error) *cobra.Command {
	server := serverFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		target, err := server()
		if err != nil {
			return err
		}
		return interruptible(cmd, func(ctx context.Context) error {
			c, err := target.Open(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			return do(ctx, c, cmd.OutOrStdout(), args)
		})
	}
	return cmd
}

// payload is a codec for values of unknown types: it keeps the bytes.
type payload struct{}

func (payload) Encode(s string) ([]byte, error) { return []byte(s), nil }
func (payload) Decode(b []byte) (string, error) { return string(b), nil }

func openQueue(c *conn.Conn, name string) (*queue.Queue[string], error) {
	return queue.New(c, name, queue.Options[string]{Codec: payload{}})
}

// openKnown opens an existing queue. If there is no queue with that name, it returns an error that lists the names of
// all queues.
func openKnown(ctx context.Context, c *conn.Conn, name string) (*queue.Queue[string], error) {
	q, err := openQueue(c, name)
	if err != nil {
		return nil, err
	}
	i, err := q.Info(ctx)
	if err != nil || i.Paused || i.Len()+i.Dead+i.Schedules > 0 {
		return q, err
	}
	key := name // an empty queue keeps its last token, on Redis and Valkey for a day
	if !c.Capabilities().Native {
		key = kit.Key(name, "last")
	}
	if n, err := kit.Number(c.Do(ctx, "EXISTS", key)); err != nil || n > 0 {
		return q, err
	}
	names, err := queueNames(ctx, c, "*")
	if err != nil {
		return nil, err
	}
	there := "there is none"
	if len(names) > 0 {
		there = fmt.Sprintf("there are %q", names)
	}
	return nil, fmt.Errorf("no queue has the name %q; %s", name, there)
}

// table writes rows below a head, in aligned columns.
func table(out io.Writer, head string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, head)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func queueList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List queues with the numbers of their jobs",
		Long: `List queues with the numbers of their jobs. PATTERN is a glob-style pattern of names.
The command scans the database: O(keys), and O(queues) on ebb.`,
		Args: cobra.MaximumNArgs(1),
	}
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, out io.Writer, args []string) error {
		names, err := queueNames(ctx, c, append(args, "*")[0])
		if err != nil {
			return err
		}
		var rows [][]string
		for _, name := range names {
			q, err := openQueue(c, name)
			if err != nil {
				return err
			}
			i, err := q.Info(ctx)
			if err != nil {
				return err
			}
			n := func(v int64) string { return strconv.FormatInt(v, 10) }
			paused := ""
			if i.Paused {
				paused = "yes"
			}
			if !i.PausedUntil.IsZero() {
				paused = "until " + stamp(i.PausedUntil)
			}
			rows = append(rows, []string{strconv.Quote(name), n(i.Ready), n(i.Delayed), n(i.Leased), n(i.Dead), i.Lateness.String(),
				n(i.Schedules), paused})
		}
		return table(out, "QUEUE\tREADY\tDELAYED\tLEASED\tDEAD\tLATE\tSCHEDULES\tPAUSED", rows)
	})
}

// queueNames returns the sorted names of the queues that match a pattern. A queue of dead letters counts as its main
// queue.
func queueNames(ctx context.Context, c *conn.Conn, pattern string) ([]string, error) {
	found := map[string]bool{}
	scan := func(match, kind, suffix string) error {
		for cursor := "0"; ; {
			v, err := c.Do(ctx, "SCAN", cursor, "MATCH", match, "COUNT", 1000, "TYPE", kind)
			if err != nil {
				return err
			}
			if len(v.Elems) != 2 {
				return fmt.Errorf("the server replied to SCAN with %s", v)
			}
			for _, key := range v.Elems[1].Elems {
				name := strings.TrimSuffix(key.String(), suffix)
				if suffix != "" && strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}") {
					name = name[1 : len(name)-1]
				}
				if suffix == "" || kit.Key(name, suffix[1:]) == key.String() { // other keys belong to no queue
					found[name] = true
				}
			}
			if cursor = v.Elems[0].String(); cursor == "0" {
				return nil
			}
		}
	}
	if c.Capabilities().Native {
		if err := scan(pattern, "delayqueue", ""); err != nil {
			return nil, err
		}
	} else {
		for suffix, kind := range map[string]string{":jobs": "hash", ":cron": "hash", ":died": "zset", ":paused": "string"} {
			for _, match := range []string{"{" + pattern + "}" + suffix, pattern + suffix} {
				if err := scan(match, kind, suffix); err != nil {
					return nil, err
				}
			}
		}
	}
	var names []string
	for name := range found {
		if main, ok := strings.CutSuffix(name, ":dead"); ok && strings.Contains(main, "}") && c.Capabilities().Native {
			name = main
			if strings.HasPrefix(main, "{") && strings.HasSuffix(main, "}") {
				name = main[1 : len(main)-1]
			}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// stamp returns an instant in the form of the output.
func stamp(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

func queuePeek() *cobra.Command {
	var state, after string
	var count int
	cmd := &cobra.Command{
		Use:   "peek NAME",
		Short: "Show jobs of a queue, page by page",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&state, "state", "all", "all, ready, delayed, leased, or dead")
	cmd.Flags().IntVarP(&count, "count", "n", 20, "how many jobs")
	cmd.Flags().StringVar(&after, "after", "", "id of the last job of the page before")
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, out io.Writer, args []string) error {
		q, err := openQueue(c, args[0])
		if err != nil {
			return err
		}
		if state == "dead" {
			return peekDead(ctx, q, out, after, count)
		}
		which, ok := map[string]queue.State{"all": queue.All, "ready": queue.Ready, "delayed": queue.Delayed, "leased": queue.Leased}[state]
		if !ok {
			return fmt.Errorf("--state is %q; it must be all, ready, delayed, leased or dead", state)
		}
		page, err := q.Peek(ctx, which, queue.PeekOptions{Count: count, After: after})
		if err != nil {
			return err
		}
		var rows [][]string
		for _, e := range page {
			rows = append(rows, []string{strconv.Quote(e.ID), e.State.String(), strconv.Itoa(e.Deliveries), stamp(e.Due),
				stamp(e.Until), strconv.Quote(e.Value)})
		}
		return table(out, "JOB\tSTATE\tDELIVERIES\tDUE\tLEASED UNTIL\tPAYLOAD", rows)
	})
}

func peekDead(ctx context.Context, q *queue.Queue[string], out io.Writer, after string, count int) error {
	page, err := q.DeadLettersAfter(ctx, after, count)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, d := range page {
		rows = append(rows, []string{strconv.Quote(d.ID), strconv.Itoa(d.Deliveries), stamp(d.Died), strconv.Quote(d.Reason),
			strconv.Quote(d.Value)})
	}
	return table(out, "JOB\tDELIVERIES\tDIED\tREASON\tPAYLOAD", rows)
}

func queuePause() *cobra.Command {
	var span time.Duration
	var early bool
	cmd := &cobra.Command{
		Use:   "pause NAME [--for DURATION]",
		Short: "Stop the delivery of a queue's jobs",
		Long: `Stop the delivery of a queue's jobs. The name of a queue that does not exist is an error, unless
--new is given: a queue is there from its first job, schedule or pause on.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().DurationVar(&span, "for", 0, "length of the pause (default: until ebb queue resume)")
	cmd.Flags().BoolVar(&early, "new", false, "also a queue that does not exist yet")
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, _ io.Writer, args []string) error {
		q, err := openQueue(c, args[0])
		if !early {
			q, err = openKnown(ctx, c, args[0])
		}
		if err != nil {
			return err
		}
		return q.Pause(ctx, span)
	})
}

func queueResume() *cobra.Command {
	cmd := &cobra.Command{Use: "resume NAME", Short: "End a pause", Args: cobra.ExactArgs(1)}
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, _ io.Writer, args []string) error {
		q, err := openKnown(ctx, c, args[0])
		if err != nil {
			return err
		}
		return q.Resume(ctx)
	})
}

func queueRequeue() *cobra.Command {
	var dead bool
	cmd := &cobra.Command{
		Use:   "requeue NAME [--dead] [ID...]",
		Short: "Make jobs due now: delayed ones, leased ones and dead letters",
		Long: `Make jobs due now, as if they had never been delivered: delayed jobs, leased ones, whose
consumers lose them, and dead letters. It prints how many it found.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVar(&dead, "dead", false, "all dead letters")
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, out io.Writer, args []string) error {
		if dead == (len(args) > 1) {
			return errors.New("ebb queue requeue needs either ids or --dead")
		}
		q, err := openQueue(c, args[0])
		if err != nil {
			return err
		}
		n, err := requeue(ctx, q, args[1:])
		_, _ = fmt.Fprintln(out, n)
		return err
	})
}

// requeue makes jobs due now. Without ids it does so for all dead letters, page by page. A dead letter stays if the
// queue has a job with its id.
func requeue(ctx context.Context, q *queue.Queue[string], ids []string) (total int64, err error) {
	if len(ids) > 0 {
		return q.Requeue(ctx, ids...)
	}
	const page = 500
	for {
		letters, err := q.DeadLetters(ctx, page)
		if err != nil || len(letters) == 0 {
			return total, err
		}
		for _, d := range letters {
			ids = append(ids, d.ID)
		}
		n, err := q.Redrive(ctx, ids...)
		if total += n; err != nil || n < int64(len(ids)) {
			return total, err
		}
		ids = ids[:0]
	}
}

func queueReschedule() *cobra.Command {
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   "reschedule NAME ID... [--in DURATION]",
		Short: "Change when waiting jobs fall due",
		Long: `Make jobs that wait, ready or delayed ones, due after a span from now, as if they had never been
delivered. A job that does not wait is an error; those after it stay as they are.`,
		Args: cobra.MinimumNArgs(2),
	}
	cmd.Flags().DurationVar(&delay, "in", 0, "time until the jobs are due (default: they are due now)")
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, _ io.Writer, args []string) error {
		q, err := openKnown(ctx, c, args[0])
		if err != nil {
			return err
		}
		for _, id := range args[1:] {
			if err := q.Reschedule(ctx, id, delay); err != nil {
				return err
			}
		}
		return nil
	})
}

func queueCancel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel NAME ID...",
		Short: "Remove jobs in any state",
		Long: `Remove jobs in any state; the consumers of leased ones lose them. Dead letters stay. It prints how
many jobs it removed.`,
		Args: cobra.MinimumNArgs(2),
	}
	return queueRemoval(cmd, (*queue.Queue[string]).Cancel)
}

func queueUnschedule() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unschedule NAME SCHEDULE...",
		Short: "Remove schedules",
		Long:  "Remove schedules. The jobs that they have added stay. It prints how many schedules it removed.",
		Args:  cobra.MinimumNArgs(2),
	}
	return queueRemoval(cmd, (*queue.Queue[string]).Unschedule)
}

// queueRemoval returns a command that removes items from a queue, and prints the number of removed items.
func queueRemoval(cmd *cobra.Command,
	remove func(q *queue.Queue[string], ctx context.Context, which ...string) (int64, error),
) *cobra.Command {
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, out io.Writer, args []string) error {
		q, err := openKnown(ctx, c, args[0])
		if err != nil {
			return err
		}
		n, err := remove(q, ctx, args[1:]...)
		_, _ = fmt.Fprintln(out, n)
		return err
	})
}

func queueSchedules() *cobra.Command {
	cmd := &cobra.Command{Use: "schedules NAME", Short: "List the schedules of a queue", Args: cobra.ExactArgs(1)}
	return queueAction(cmd, func(ctx context.Context, c *conn.Conn, out io.Writer, args []string) error {
		q, err := openQueue(c, args[0])
		if err != nil {
			return err
		}
		all, err := q.Schedules(ctx)
		if err != nil {
			return err
		}
		slices.SortStableFunc(all, func(a, b queue.Scheduled[string]) int {
			return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.Name, b.Name))
		})
		var rows [][]string
		for _, s := range all {
			n := func(v int64) string { return strconv.FormatInt(v, 10) }
			rows = append(rows, []string{strconv.Quote(s.Name), s.Rule.String(), stamp(s.Next), stamp(s.Last), n(s.Runs), n(s.Skipped), n(s.Late),
				strconv.Quote(s.Value)})
		}
		return table(out, "SCHEDULE\tRULE\tNEXT\tLAST\tRUNS\tSKIPPED\tLATE\tPAYLOAD", rows)
	})
}
