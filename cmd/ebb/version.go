package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/command"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the Go version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "ebb %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

// version returns ebb's version, and the commit where the build recorded it: "0.6.0,
// commit 0123456789ab, modified".
func version() string {
	v := command.Version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if rev := settings["vcs.revision"]; rev != "" {
		v += ", commit " + rev[:min(12, len(rev))]
	}
	if settings["vcs.modified"] == "true" {
		v += ", modified"
	}
	return v
}
