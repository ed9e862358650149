package main

import (
	"bytes"
	"flag"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/reactor"
	"golang.org/x/sys/unix"
)

type session struct{ want int }

var pong = []byte("+PONG\r\n")

func (s *session) Serve(in, out []byte) (int, []byte, reactor.Verdict) {
	done := 0
	for {
		rest := in[done:]
		if len(rest) == 0 {
			return done, out, reactor.Continue
		}
		if rest[0] != '*' {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return done, out, reactor.Continue
			}
			done += i + 1
			out = append(out, pong...)
			continue
		}
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return done, out, reactor.Continue
		}
		n, _ := strconv.Atoi(string(rest[1 : i-1]))
		p := i + 1
		for range n {
			j := bytes.IndexByte(rest[p:], '\n')
			if j < 0 {
				return done, out, reactor.Continue
			}
			l, _ := strconv.Atoi(string(rest[p+1 : p+j-1]))
			p += j + 1 + l + 2
			if p > len(rest) {
				return done, out, reactor.Continue
			}
		}
		done += p
		out = append(out, pong...)
	}
}
func (s *session) Want() int                    { return 0 }
func (s *session) TakePushes(out []byte) []byte { return out }
func (s *session) Closed(error)                 {}

func main() {
	port := flag.String("port", "7001", "")
	loops := flag.Int("loops", 1, "")
	procs := flag.Int("procs", 0, "")
	idle := flag.Bool("idle", false, "")
	flag.Parse()
	if *procs > 0 {
		runtime.GOMAXPROCS(*procs)
	}
	cfg := reactor.Config{Loops: *loops, NewSession: func(reactor.Conn) reactor.Session { return &session{} }}
	if *idle {
		cfg.Idle = func(int) time.Duration { _ = time.Now(); return 100 * time.Millisecond }
	}
	r, err := reactor.New(cfg)
	if err != nil {
		panic(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:"+*port)
	if err != nil {
		panic(err)
	}
	var fd int
	rc, _ := ln.(*net.TCPListener).SyscallConn()
	_ = rc.Control(func(f uintptr) { fd, _ = unix.FcntlInt(f, unix.F_DUPFD_CLOEXEC, 0) })
	_ = ln.Close()
	if _, err := r.AddListener(fd, "tcp"); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("ready\n")
	select {}
}
