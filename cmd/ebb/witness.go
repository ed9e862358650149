package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group"
)

func witnessCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "witness --group HOST:PORT,HOST:PORT,HOST:PORT [--directive value ...]",
		Short: "Run a node of a group that has a vote and no data",
		Long: `Run a node of a group that has a vote and no data: with two servers, the third node
of the list. It keeps a few KB in the directory group of --dir, or of the working directory,
and answers Sentinel's protocol at --sentinel-port of the addresses of --bind, by default to
clients of this machine alone. A small machine suffices.

  ebb witness --group a:7379,b:7379,c:7379 --dir /var/lib/ebb --bind "* -::*" --requirepass secret`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
				return cmd.Help()
			}
			return witness(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
}

// witness runs a witness until a signal ends it.
func witness(ctx context.Context, args []string, out io.Writer) error {
	p := &process{}
	args, misspelt, err := withEnvironment(args, os.Environ())
	if err != nil {
		return err
	}
	p.misspelt = misspelt
	if p.cfg, err = config.Load(args, nil); err != nil {
		return err
	}
	if err := disk.OS().MkdirAll(cmp.Or(p.cfg.String("dir"), ".")); err != nil {
		return err
	}
	closeLog, err := p.openLog(out)
	if err != nil {
		return err
	}
	defer closeLog()
	o, err := p.groupOptions()
	if err == nil && o == nil {
		err = fmt.Errorf("ebb witness needs --group, the list of all nodes")
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	w, err := group.OpenWitness(*o)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "ebb %s is a witness of the group %s (pid %d)\n", version(), o.Group.Name, os.Getpid())
	<-ctx.Done()
	return w.Close()
}
