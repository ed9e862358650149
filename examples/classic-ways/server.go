package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/server"
)

// pair is a master and its replica.
type pair struct {
	master, replica *ebb.Conn
	stop            func()
}

// redisServer is a redis-server that this program has started.
type redisServer struct {
	c    *ebb.Conn
	port string
	cmd  *exec.Cmd
	dir  string
}

// startRedis starts a redis-server on a free port, which keeps nothing in files.
func startRedis(ctx context.Context, program string, args ...string) (s *redisServer, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s = &redisServer{}
	_, s.port, _ = net.SplitHostPort(ln.Addr().String())
	_ = ln.Close()
	if s.dir, err = os.MkdirTemp("", "classic-"); err != nil {
		return nil, err
	}
	args = append([]string{"--port", s.port, "--bind", "127.0.0.1", "--save", "", "--dir", s.dir, "--repl-diskless-sync-delay", "0"}, args...)
	s.cmd = exec.CommandContext(ctx, program, args...)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	var last error
	err = until(ctx, "redis-server answers", func() (bool, error) {
		s.c, last = ebb.Open(ctx, "redis://127.0.0.1:"+s.port)
		return last == nil, nil
	})
	if err != nil {
		s.stop()
		return nil, errors.Join(err, last)
	}
	return s, nil
}

// stop ends the server.
func (s *redisServer) stop() {
	if s.c != nil {
		_ = s.c.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// redisPair starts two redis-servers.
func redisPair(ctx context.Context, program string) (*pair, error) {
	master, err := startRedis(ctx, program)
	if err != nil {
		return nil, err
	}
	replica, err := startRedis(ctx, program, "--replicaof", "127.0.0.1 "+master.port)
	if err != nil {
		master.stop()
		return nil, err
	}
	return &pair{master.c, replica.c, func() { replica.stop(); master.stop() }}, nil
}

// ebbPair starts two servers of ebb in this process.
func ebbPair(ctx context.Context) (*pair, error) {
	var servers []*server.Server
	var conns []*ebb.Conn
	stop := func() {
		for _, c := range conns {
			_ = c.Close()
		}
		for _, s := range servers {
			_ = s.Close()
		}
	}
	directives := []string{"repl-diskless-sync-delay 0"}
	for range 2 {
		s, err := server.Start(ctx, server.Config{Addr: "127.0.0.1:0", Directives: directives})
		if err != nil {
			stop()
			return nil, err
		}
		servers = append(servers, s)
		c, err := ebb.Open(ctx, "redis://"+s.Addr().String())
		if err != nil {
			stop()
			return nil, err
		}
		conns = append(conns, c)
		host, port, _ := net.SplitHostPort(s.Addr().String())
		directives = append(directives, fmt.Sprintf("replicaof %s %s", host, port))
	}
	return &pair{conns[0], conns[1], stop}, nil
}
