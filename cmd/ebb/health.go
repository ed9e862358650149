package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/loadgen"
)

func healthCommand() *cobra.Command {
	var live bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health [flags]",
		Short: "Report by the exit status whether a server can be used",
		Long: `Connect to a server, print one line about its state, and end with status 0 if it can be
used, 1 if not: it cannot be reached, it loads its data, its link to the master is down, or
it refuses writes because a save failed. A server that asks for a password that was not
given is in use, and status 0.

With --live the status is 0 as soon as the server replies, even while it loads: for a
probe that restarts the server.

Without flags it reads the server's port, socket, TLS port and password from the environment (EBB_PORT,
EBB_TLS_PORT, EBB_REQUIREPASS, EBB_REQUIREPASS_FILE), as ebb serve does in the same container. It works with Redis and Valkey.`,
		Example: `  ebb health
  ebb health -u redis://host:6379 --timeout 1s`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	server := serverFlags(f)
	f.BoolVar(&live, "live", false, "status 0 as soon as the server replies")
	f.DurationVar(&timeout, "timeout", 3*time.Second, "time for connecting and all replies")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := ownServer(f, server)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		state, ok := health(ctx, target, live)
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", target.Addr, state)
		if !ok {
			return exitStatus(1)
		}
		return nil
	}
	return cmd
}

// ownServer returns the server that the flags name. Without such flags it returns the server that `ebb serve` runs in
// this environment.
func ownServer(f *pflag.FlagSet, server func() (loadgen.Target, error)) (loadgen.Target, error) {
	cfg, err := fromEnvironment(f)
	if err != nil {
		return loadgen.Target{}, err
	}
	t, err := server()
	if err == nil && cfg != nil && t.TLS != nil {
		// With tls-auth-clients the server requires a certificate of its authority: its own certificate is one.
		if pair, err := tls.LoadX509KeyPair(cfg.File("tls-cert-file"), cfg.File("tls-key-file")); err == nil {
			t.TLS.Certificates = []tls.Certificate{pair}
		}
	}
	return t, err
}

// fromEnvironment sets the flags for the port, the socket and the password from the environment of `ebb serve`, and
// returns its directives. It returns nil if the command line names a server.
func fromEnvironment(f *pflag.FlagSet) (*config.Set, error) {
	for _, name := range []string{"host", "port", "socket", "url", "pass"} {
		if f.Changed(name) {
			return nil, nil
		}
	}
	options, _, err := config.Environ(os.Environ())
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(lastDirectory(directivesOnly(options)), strings.NewReader(""))
	if err != nil {
		return nil, err
	}
	set := map[string]string{"pass": cfg.RequirePass()}
	switch port, socket, secure := cfg.Int("port"), cfg.String("unixsocket"), cfg.Int("tls-port"); {
	case port > 0:
		set["port"] = strconv.FormatInt(port, 10)
	case socket != "":
		set["socket"] = socket
	case secure > 0: // on this machine: the certificate has the name by which other machines know it
		set["port"], set["tls"], set["insecure"] = strconv.FormatInt(secure, 10), "true", "true"
	}
	for name, value := range set {
		if value == "" {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// health returns the state of a server in words, and whether the server can be used; with live, whether it replies.
func health(ctx context.Context, target loadgen.Target, live bool) (state string, ok bool) {
	c, err := target.Open(ctx)
	if err == nil {
		defer func() { _ = c.Close() }()
		err = c.Ping(ctx)
	}
	if err != nil {
		switch text := err.Error(); {
		case strings.Contains(text, "WRONGPASS"):
			return "the server replies, and refuses this password", true
		case strings.Contains(text, "NOAUTH"), strings.Contains(text, "NOPERM"):
			return "the server replies, and asks for a password", true
		case c != nil && strings.Contains(text, "LOADING"):
			return loading(ctx, c), live
		default: // no connection; or the replies MASTERDOWN or BUSY
			return text, live && c != nil && ctx.Err() == nil
		}
	}
	info := fields(ctx, c)
	product := doctor.Product(info)
	name := fmt.Sprintf("%s %s, %s", product, info[product+"_version"], info["role"])
	switch {
	case len(info) == 0:
		return "the server replies; this user may not run INFO", true
	case live:
		return "the server replies: " + name, true
	case info["loading"] == "1":
		return loading(ctx, c), false
	case info["role"] == "slave" && info["master_link_status"] == "down":
		down := "is down since " + info["master_link_down_since_seconds"] + " s"
		if strings.HasPrefix(info["master_link_down_since_seconds"], "-") { // redis-server before the first link
			down = "was not up yet"
		}
		return fmt.Sprintf("%s: the link to its master %s:%s %s", name, info["master_host"], info["master_port"], down), false
	case info["aof_last_write_status"] == "err":
		return name + ": it refuses writes, because writing the append-only file failed", false
	case info["rdb_last_bgsave_status"] == "err" && stopsWrites(ctx, c):
		return name + ": it refuses writes, because the last snapshot failed (stop-writes-on-bgsave-error)", false
	}
	return "ok: " + name, true
}

func loading(ctx context.Context, c *conn.Conn) string {
	return fmt.Sprintf("the server loads its data: %s %%", fields(ctx, c)["loading_loaded_perc"])
}

// stopsWrites reports whether a failed snapshot makes the server refuse writes. It returns true if the user may not
// ask.
func stopsWrites(ctx context.Context, c *conn.Conn) bool {
	v, err := c.Do(ctx, "CONFIG", "GET", "stop-writes-on-bgsave-error")
	return err != nil || v.Err() != nil || len(v.Elems) != 2 || v.Elems[1].String() != "no"
}

// fields returns the fields of INFO, or none if the user may not run it.
func fields(ctx context.Context, c *conn.Conn) map[string]string {
	v, err := c.Do(ctx, "INFO")
	if err != nil || v.Err() != nil {
		return nil
	}
	return doctor.Info(v.String())
}
