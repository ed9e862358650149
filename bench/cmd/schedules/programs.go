package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

func address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)) }

// programs are the processes of a measurement. One goroutine uses it.
type programs struct {
	record  *record
	dir     string
	daemon  *exec.Cmd
	others  map[string][]*exec.Cmd // by role
	readers sync.WaitGroup
	killed  map[string]int
}

func newPrograms(r *record) *programs {
	return &programs{record: r, others: map[string][]*exec.Cmd{}, killed: map[string]int{}}
}

// server starts the server and waits until it accepts connections; it may still load its files then.
func (p *programs) server(dir string) error {
	p.dir = dir
	args := []string{"--port", strconv.Itoa(*port), "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes",
		"--appendfsync", "always", "--save", ""}
	if strings.Contains(filepath.Base(*server), "ebb") {
		args = append([]string{"serve"}, args...)
	}
	log, err := os.OpenFile(filepath.Join(dir, "server.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(*server, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	p.daemon = cmd // a server that has ended is seen by the failed dials
	for range 1000 {
		c, err := net.Dial("tcp", address())
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	said, _ := os.ReadFile(log.Name())
	return fmt.Errorf("%s accepts no connection on %s; it said: %s", *server, address(), said)
}

// add starts this program in a role, and reads what it writes.
func (p *programs) add(role string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, append([]string{"-role", role}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.others[role] = append(p.others[role], cmd)
	p.readers.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.record.add(s.Text())
		}
		_ = cmd.Wait() // the end of a killed program is not an error
	})
	return nil
}

// kill ends a process as kill -9 does, and starts it again at once.
func (p *programs) kill(what string, draw *rand.Rand) error {
	p.killed[what]++
	if what == "server" {
		_ = p.daemon.Process.Kill()
		_ = p.daemon.Wait()
		return p.server(p.dir)
	}
	all := p.others[what]
	if len(all) == 0 {
		return fmt.Errorf("%s has no program of this kind", *system)
	}
	i := draw.IntN(len(all))
	_ = all[i].Process.Kill()
	p.others[what] = append(all[:i:i], all[i+1:]...)
	return p.add(what)
}

// stop ends all processes.
func (p *programs) stop() {
	for _, all := range p.others {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
		}
	}
	p.readers.Wait()
	if p.daemon != nil {
		_ = p.daemon.Process.Kill()
		_ = p.daemon.Wait()
	}
}
