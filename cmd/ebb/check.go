package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/check"
	"github.com/ebbdb/ebb/internal/cli"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

func checkCommand() *cobra.Command {
	var fix, yes, quiet bool
	cmd := &cobra.Command{
		Use:   "check [--fix [--yes]] FILE|DIR...",
		Short: "Examine files of data, and repair the tail of an append-only file",
		Long: `Examine files of data: RDB files and append-only files of ebb, Redis and Valkey,
manifests with the files they name, group.state and raft.log of a group's node, and
directories of these. What a file is follows from its first bytes, or its name. It
prints what the files hold and, with offset and key, what is wrong; then it ends with
status 1.

With --fix it removes an incomplete command from the end of an append-only file, as a
server does on start under aof-load-truncated. It asks before it does so.

  ebb check /var/lib/redis
  ebb check --fix appendonlydir/appendonly.aof.1.incr.aof`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			stderr := cmd.ErrOrStderr()
			o := check.Options{FS: disk.OS(), Out: cmd.OutOrStdout(), Now: time.Now().UnixMilli(), Fix: fix}
			o.Ask = asker(cmd.InOrStdin(), stderr, yes)
			if !quiet {
				o.Progress = checkProgress(stderr)
			}
			values := newValueChecker()
			defer values.db.Close()
			o.Value = values.check
			if !check.Run(o, args) {
				return exitStatus(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "cut off the tail of an append-only file that ends within a command")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --fix: do not ask")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	return cmd
}

// asker returns a function that asks a question. The end of the input counts as no.
func asker(in io.Reader, out io.Writer, yes bool) func(string) bool {
	lines := bufio.NewReader(in)
	return func(question string) bool {
		if yes {
			return true
		}
		_, _ = fmt.Fprintf(out, "%s [y/N] ", question)
		line, _ := lines.ReadString('\n')
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes"
	}
}

// The intervals between progress lines. On a terminal each line replaces the previous one.
const (
	progressPause = time.Second
	progressLines = 10 * time.Second
)

// checkProgress returns a function that shows the progress of a check that takes longer
// than a second.
func checkProgress(out io.Writer) func(path string, share float64) {
	pause, end := progressLines, "\n"
	if f, ok := out.(*os.File); ok && cli.IsTerminal(f) {
		pause, end = progressPause, "\r"
	}
	last := time.Now()
	return func(path string, share float64) {
		now := time.Now()
		if now.Sub(last) < pause {
			return
		}
		last = now
		_, _ = fmt.Fprintf(out, "%s: %3.0f %%%s", filepath.Base(path), 100*share, end)
	}
}

// valueChecker examines values of ebb's own types by restoring each of them into an empty engine.
type valueChecker struct {
	db  *engine.DB
	buf []byte
}

func newValueChecker() *valueChecker {
	return &valueChecker{db: engine.Open(engine.Options{Databases: 1, Shards: 1})}
}

func (v *valueChecker) check(e *rdb.Entry) error {
	v.buf = append(v.buf[:0], e.Value...)
	v.buf = rdb.Seal(v.buf, min(e.Version, rdb.Version))
	key := []byte("checked")
	tx := v.db.Begin(0, key)
	defer tx.Commit()
	defer tx.Del(key)
	if err := tx.Restore(key, v.buf, engine.RestoreOptions{Replace: true}); err != nil {
		return fmt.Errorf("cannot load the value: %w", err)
	}
	return nil
}
