package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/admin"
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

// serverVersion returns the line of ebb serve --version, in the form of redis-server. Programs that start servers for
// tests read the version behind the first "v=" as a version of Redis. So the version of Redis comes first, and "ebb="
// has ebb's own.
func serverVersion() string {
	commit, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(version(), admin.Version), ", commit "), ",")
	if commit == "" {
		commit = "00000000"
	}
	return fmt.Sprintf("ebb server v=%s sha=%s:0 malloc=%s bits=%d build=ebb-%s ebb=%s redis_version=%s",
		admin.RedisVersion, commit, runtime.Version(), strconv.IntSize, admin.Version, admin.Version, admin.RedisVersion)
}

// version returns ebb's version, with the commit if the build has recorded it: "0.7.0, commit 0123456789ab,
// modified".
func version() string {
	v := admin.Version
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
