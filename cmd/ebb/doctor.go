package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/system"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [flags] [URL]",
		Short: "Examine a server: faults, why they matter, and what corrects them",
		Long: `Examine a running server of ebb, Redis or Valkey: memory and eviction, files, expiry and events,
delay queues, replication, clients, access, TLS, slow commands, the clock, and for a server on this machine the
kernel, the disk and the limit of open files.

Each line is ok, look (a risk, unless it is intended) or act (something fails, or will), with
the reason, and the commands that correct it (fix) or what else to do (how). doctor changes nothing. The exit status is 0 if all is
ok, 1 with a look, 2 with an act, and 3 if the server cannot be examined.`,
		Example: `  ebb doctor
  ebb doctor redis://ops:secret@host:6379
  ebb doctor rediss://host:6380 --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return unexamined(cmd, fmt.Errorf("ebb doctor got %d arguments; want at most one URL", len(args)))
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(unexamined)
	server := serverFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if err := cmd.Flags().Set("url", args[0]); err != nil {
				return unexamined(cmd, err)
			}
		}
		target, err := server()
		if err != nil {
			return unexamined(cmd, err)
		}
		return interruptible(cmd, func(ctx context.Context) error {
			found, err := examine(ctx, target)
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			if err != nil {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "ebb: %s cannot be examined: %v\n", target.Addr, err)
				return exitStatus(3)
			}
			show := doctor.Print
			if asJSON {
				show = doctor.PrintJSON
			}
			if err := show(cmd.OutOrStdout(), found); err != nil {
				return err
			}
			if worst := doctor.Worst(found); worst > doctor.OK {
				return exitStatus(worst)
			}
			return nil
		})
	}
	return cmd
}

// unexamined prints the error that prevented an examination, and returns the status 3, because 1 and 2 are those of
// findings.
func unexamined(cmd *cobra.Command, err error) error {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "ebb: nothing was examined: %v\n", err)
	return exitStatus(3)
}

// firstReply is the time limit of a server's first reply, and then of each further reply.
var firstReply = 15 * time.Second

func examine(ctx context.Context, target loadgen.Target) ([]doctor.Finding, error) {
	o := doctor.Options{Local: target.Network == "unix"}
	if host, _, err := net.SplitHostPort(target.Addr); err == nil {
		o.Local = system.LoopbackHost(host)
	}
	var shown []*x509.Certificate
	if target.TLS != nil {
		target.TLS = target.TLS.Clone()
		target.TLS.VerifyConnection = func(s tls.ConnectionState) error {
			shown = s.PeerCertificates
			return nil
		}
	}
	within, cancel := context.WithTimeout(ctx, firstReply)
	defer cancel()
	c, err := target.Open(within)
	if err == nil {
		defer func() { _ = c.Close() }()
		err = doctor.Replies(within, c)
	}
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return nil, fmt.Errorf("no reply to PING within %v: its clients may be paused (CLIENT PAUSE), a command runs for long, "+
			"or the port is not that of a server", firstReply)
	}
	if err != nil {
		return nil, err
	}
	o.Certificates, o.Reply, o.DB = shown, firstReply, target.DB
	o.Database = func(ctx context.Context, db int) (*conn.Conn, error) {
		other := target
		other.DB = db
		return other.Open(ctx)
	}
	return doctor.Examine(ctx, c, o)
}
