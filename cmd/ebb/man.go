//go:build man

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ebbdb/ebb/internal/config"
)

// buildCommands returns the commands that only the build of packages needs. Their library for manual pages has a
// third of a megabyte, so servers are built without it.
func buildCommands() []*cobra.Command { return []*cobra.Command{manCommand()} }

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Hidden: true,
		Short:  "Write the manual pages into a directory",
		Long: `Write the manual pages into DIR/man1 and DIR/man5: one for each command, from its help, and
ebb.conf(5) with every directive. Packages hold them.

  go run -tags man ./cmd/ebb man /usr/local/share/man`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			one, five := filepath.Join(args[0], "man1"), filepath.Join(args[0], "man5")
			for _, dir := range []string{one, five} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
			}
			undated := time.Unix(0, 0).UTC() // so that each build of a release writes the same pages
			header := &doc.GenManHeader{Section: "1", Source: "ebb " + version(), Manual: "ebb", Date: &undated}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, header, one); err != nil {
				return err
			}
			if err := plain(one); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(five, "ebb.conf.5"), md2man.Render([]byte(confPage())), 0o644)
		},
	}
}

// plain removes two things that cobra writes and readers do not need: the date, which is not that of the release, and
// the default of switches.
func plain(dir string) error {
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return err
	}
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte(`"Jan 1970"`), []byte(`""`), 1)
		text = bytes.ReplaceAll(text, []byte("[=false]"), nil)
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// confPage returns ebb.conf(5) as Markdown, from the table of directives.
func confPage() string {
	var b, unused strings.Builder
	fmt.Fprintf(&b, `%% "EBB.CONF" "5" "" "ebb %s" "ebb"
# NAME
ebb.conf - the configuration of ebb serve

# SYNOPSIS
**ebb serve** *FILE* [**--directive** *value* ...]

# DESCRIPTION
A file has a directive with its value on each line, in the syntax of redis.conf: words are separated by
blanks, quotes hold words with blanks, and a line that begins with # is a comment. **include** reads another file.
An environment variable sets a directive too: EBB_MAXMEMORY_POLICY is maxmemory-policy, and EBB_REQUIREPASS_FILE names a file
that holds the value of requirepass. Options of the command line override the environment, and the environment overrides
the file. **CONFIG SET** changes most directives while the server runs, and **CONFIG REWRITE** writes them into the file.

# DIRECTIVES
`, version())
	for _, d := range config.Directives() {
		if d.Unused != "" {
			fmt.Fprintf(&unused, "**%s**\n: %s.\n\n", d.Name, manText(d.Unused))
			continue
		}
		fmt.Fprintf(&b, "**%s** *%s*\n: %s.", d.Name, manText(d.Usage()), manText(d.Doc))
		if d.Default != "" {
			fmt.Fprintf(&b, " Default: %s.", manText(d.Default))
		}
		if d.FileDefault != "" {
			fmt.Fprintf(&b, " Default with a configuration file: %s.", manText(d.FileDefault))
		}
		if d.Immutable {
			b.WriteString(" It can be given at the start only.")
		}
		b.WriteString("\n\n")
	}
	fmt.Fprintf(&b, "# DIRECTIVES WITHOUT AN EFFECT\nFiles of Redis and Valkey may have them.\n\n%s", unused.String())
	b.WriteString("# SEE ALSO\n**ebb-serve**(1), **ebb-check**(1)\n")
	return b.String()
}

// manText escapes characters that are markup in Markdown.
func manText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`").Replace(s)
}
