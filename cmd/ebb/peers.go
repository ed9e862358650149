package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/replication"
)

// peers are the servers that replicate one master, such as the pods of a StatefulSet, from ebb serve --peers. A peer
// that starts decides by itself whether it is the master:
//
//	a peer is a master                       follow it
//	a peer follows a master                  follow that one, or be the master if it is this server
//	no peer replies, and the file of the     follow the master that the file names, or be the master if it
//	  last role exists                          says that this server was the master
//	no peer replies, and there is no file    the first of the list is the master
//
// The file ebb.role in the data's directory holds the last role. So after an outage of all peers the last master
// becomes the master again, and not a server with older data. This code elects no master among running servers:
// FAILOVER and `ebb handover` do.
type peers struct {
	addrs []string
	self  int
}

// Times of the start. An absent peer refuses the connection at once, or has no address.
const (
	peerPatience = 3 * time.Second
	rolePause    = time.Second // between two checks of this server's own role
	roleFile     = "ebb.role"
)

// takePeers removes --peers, which is not a directive, from the arguments. name is this machine's name.
func takePeers(args []string, name string) (*peers, []string, error) {
	at := slices.Index(args, "--peers")
	if at < 0 {
		return nil, args, nil
	}
	if at+1 == len(args) {
		return nil, nil, errors.New("--peers needs the servers that replicate one master: host:port host:port ...")
	}
	p := &peers{self: -1}
	for _, addr := range strings.FieldsFunc(args[at+1], func(r rune) bool { return r == ' ' || r == ',' }) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, nil, fmt.Errorf("--peers: %q is not an address; want host:port: %w", addr, err)
		}
		if first, _, _ := strings.Cut(host, "."); first == name || host == name {
			p.self = len(p.addrs)
		}
		p.addrs = append(p.addrs, addr)
	}
	if p.self < 0 {
		return nil, nil, fmt.Errorf("--peers: no host of %s is this machine; want one with its name, %s", strings.Join(p.addrs, ", "), name)
	}
	return p, slices.Delete(slices.Clone(args), at, at+2), nil
}

// master returns the address of the master to follow, or "" if this server is the master. A directive replicaof takes
// precedence.
func (p *peers) master(ctx context.Context, cfg *config.Set) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	t := loadgen.Target{User: cfg.String("masteruser"), Password: cfg.String("masterauth")}
	if t.Password == "" {
		t.Password = cfg.RequirePass()
	}
	if cfg.Bool("tls-replication") {
		var err error
		if t.TLS, err = replication.ClientTLS(cfg.String); err != nil {
			return "", fmt.Errorf("--peers: %w", err)
		}
	}
	roles := make([]role, len(p.addrs))
	errs := make([]error, len(p.addrs))
	var wg sync.WaitGroup
	for i, addr := range p.addrs {
		if i != p.self {
			to := t
			to.Addr = addr
			wg.Go(func() { roles[i], errs[i] = roleAt(ctx, to) })
		}
	}
	wg.Wait()
	for i, err := range errs {
		// A peer that refuses the password may be the master. A second master would lose data.
		if text := fmt.Sprint(err); strings.Contains(text, "NOAUTH") || strings.Contains(text, "WRONGPASS") || strings.Contains(text, "NOPERM") {
			return "", fmt.Errorf("--peers: %s refuses to report its role; masteruser and masterauth must be a user with +role and its "+
				"password: %w", p.addrs[i], err)
		}
	}
	return p.choose(roles, readRole(cfg)), nil
}

// role is the role of a server: "master", "slave" with its master, or "" if unknown.
type role struct{ name, master string }

func (r role) String() string { return strings.TrimSpace(r.name + " " + r.master) }

// choose applies the rules of peers. last is this server's role in the file ebb.role.
func (p *peers) choose(roles []role, last role) string {
	for i, r := range roles {
		if i != p.self && r.name == "master" {
			return p.addrs[i]
		}
	}
	for i, r := range roles {
		if i == p.self || r.name != "slave" {
			continue
		}
		if r.master == p.addrs[p.self] {
			return ""
		}
		return r.master
	}
	switch {
	case last.name == "slave":
		return last.master
	case last.name == "master" || p.self == 0:
		return ""
	}
	return p.addrs[0]
}

// roleAt returns the role of a server.
func roleAt(ctx context.Context, t loadgen.Target) (role, error) {
	c, err := t.Open(ctx)
	if err != nil {
		return role{}, err
	}
	defer func() { _ = c.Close() }()
	return roleOf(ctx, c)
}

func roleOf(ctx context.Context, c *conn.Conn) (r role, err error) {
	v, err := c.Do(ctx, "ROLE")
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return r, err
	}
	if len(v.Elems) > 0 {
		r.name = v.Elems[0].String()
	}
	if r.name == "slave" && len(v.Elems) > 2 {
		r.master = net.JoinHostPort(v.Elems[1].String(), v.Elems[2].String())
	}
	return r, nil
}

// rolePath returns the path of the file ebb.role, or "" for a server whose data is only in memory.
func rolePath(cfg *config.Set) string {
	if !cfg.Durable() {
		return ""
	}
	return filepath.Join(cfg.String("dir"), roleFile)
}

// readRole reads the file ebb.role.
func readRole(cfg *config.Set) role {
	text, _ := os.ReadFile(rolePath(cfg))
	name, master, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return role{name, master}
}

// keep writes the server's role into the file ebb.role and passes it to changed, if that is not nil: now, and at each
// change until the caller calls stop. After a failure it tries again.
func (p *peers) keep(cfg *config.Set, c *conn.Conn, changed func(context.Context, role) error, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	path := rolePath(cfg)
	now, written, labelled := role{}, readRole(cfg), role{}
	write := func() (err error) {
		if now, err = roleOf(ctx, c); err != nil || now == written || path == "" {
			return err
		}
		if err = config.ReplaceFile(path, now.String()+"\n"); err == nil {
			written = now
		}
		return err
	}
	tell := func() error {
		if changed == nil || now.name == labelled.name {
			return nil
		}
		err := changed(ctx, now)
		if err == nil {
			labelled = now
		}
		return err
	}
	reported := ""
	report := func(err error) {
		if text := fmt.Sprint(err); err != nil && ctx.Err() == nil && text != reported {
			log.Warn("cannot record the server's role; the server tries again", "error", err)
			reported = text
		}
	}
	report(write()) // before the role can change
	var wg sync.WaitGroup
	wg.Go(func() {
		ticks := time.NewTicker(rolePause)
		defer ticks.Stop()
		for {
			report(tell())
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				report(write())
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		_ = c.Close()
	}
}
