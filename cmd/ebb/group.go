package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/instance"
)

// joins returns the server's part in its group, nil if it belongs to none.
func (p *process) joins() (instance.Group, error) {
	o, err := p.groupOptions()
	if o == nil || err != nil {
		return nil, err
	}
	if err := settings.CheckLogin(p.cfg); err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(o.Group.Self.Address) // settings has checked it
	if ip := p.cfg.String("replica-announce-ip"); ip != "" {
		host = ip
	}
	port := p.cfg.Int("replica-announce-port")
	if port == 0 && p.cfg.Bool("tls-replication") {
		port = p.cfg.Int("tls-port")
	}
	if port == 0 {
		port = p.cfg.Int("port")
	}
	o.Clients = net.JoinHostPort(host, strconv.FormatInt(port, 10))
	return group.New(*o), nil
}

// groupOptions reads the directives of a group.
func (p *process) groupOptions() (*group.Options, error) {
	g, err := settings.Read(p.cfg, isHere)
	if g == nil || err != nil {
		return nil, err
	}
	o := &group.Options{Group: g, Now: sinceBoot(), Dir: p.cfg.String("dir"), Random: randomNumber, Logger: p.log, Version: admin.RedisVersion,
		Bind: p.cfg.Bind(), Password: p.cfg.RequirePass(), Protected: p.cfg.ProtectedMode()}
	if g.Replicas {
		if o.Server, o.Client, err = instance.GroupTLS(p.cfg, p.log); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // ends the process instead of returning an error
	return binary.BigEndian.Uint64(b[:])
}

// isHere reports whether a host of a group's list is this machine.
func isHere(host string) (bool, error) {
	found, err := net.LookupIP(host)
	if err != nil {
		return false, err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, ip := range found {
		if ip.IsLoopback() {
			return true, nil
		}
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return true, nil
			}
		}
	}
	return false, nil
}

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
