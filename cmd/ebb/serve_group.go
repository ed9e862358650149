package main

import (
	"crypto/rand"
	"encoding/binary"
	"net"
	"strconv"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/group"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/instance"
)

// joins returns the server's part in its group, or nil if it is not in a group.
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

// groupOptions reads the directives of a group. It returns nil if the server is not in a group.
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
	_, _ = rand.Read(b[:]) // rand.Read never returns an error: it ends the process instead
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
