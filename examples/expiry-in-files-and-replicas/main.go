// Command expiry-in-files-and-replicas shows how append-only files, snapshots and replicas
// treat expired keys. It runs servers of its own, in a temporary directory; see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() {
	program := flag.String("ebb", "", "the program ebb; by default the one in the PATH, or else one that is built here")
	url := flag.String("url", "", "not taken: this example starts servers of its own, because it restarts them and reads their files")
	flag.Parse()
	if *url != "" {
		fmt.Fprintf(os.Stderr, "-url %s: this example starts servers of its own, because it restarts them and reads their "+
			"files; leave -url out\n", *url)
		os.Exit(2)
	}
	example.Quiet() // the program connects to servers that are not started yet
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "expiry-")
	if err == nil {
		if *program == "" {
			*program, err = find(ctx, dir)
		}
		if err == nil {
			err = run(ctx, os.Stdout, *program, dir)
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// find returns the path of ebb: the one in the PATH, or one that `go build` makes in dir.
func find(ctx context.Context, dir string) (string, error) {
	if path, err := exec.LookPath("ebb"); err == nil {
		return path, nil
	}
	path := filepath.Join(dir, "ebb")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	fmt.Println("ebb is not in the PATH; go build makes one")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/ebbdb/ebb/cmd/ebb")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("ebb is not in the PATH, and go build fails: %w\n%sname the program with -ebb", err, out)
	}
	return path, nil
}

// run prints the story to out. If the result of a step differs from the story, run returns an
// error.
func run(ctx context.Context, out io.Writer, program, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s := &story{ctx: ctx, out: out, program: program, dir: dir}
	defer s.stop()
	for _, step := range []func() error{s.logged, s.rewritten, s.replicated, s.loaded} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// story has the state that the steps share.
type story struct {
	ctx     context.Context
	out     io.Writer
	program string
	dir     string
	servers []*server
	master  *server
}

// server is a running `ebb serve`.
type server struct {
	conn *ebb.Conn
	cmd  *exec.Cmd
	port string
	dir  string
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// start runs a server in a directory below the story's and waits until it answers.
func (s *story) start(name string, args ...string) (*server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	_ = ln.Close()
	x := &server{port: port, dir: filepath.Join(s.dir, name)}
	if err := os.MkdirAll(x.dir, 0o755); err != nil {
		return nil, err
	}
	args = append([]string{"serve", "--port", port, "--bind", "127.0.0.1", "--dir", x.dir, "--enable-debug-command", "yes"}, args...)
	x.cmd = exec.CommandContext(s.ctx, s.program, args...)
	x.cmd.Stderr = os.Stderr
	if err := x.cmd.Start(); err != nil {
		return nil, err
	}
	s.servers = append(s.servers, x)
	return x, s.until("the server answers", func() bool {
		x.conn, err = ebb.Open(s.ctx, "redis://127.0.0.1:"+port)
		return err == nil
	})
}

// stop ends all servers.
func (s *story) stop() {
	for _, x := range s.servers {
		if x.conn != nil {
			_ = x.conn.Close()
		}
		_ = x.cmd.Process.Kill()
		_ = x.cmd.Wait()
	}
}

// until checks a condition every 5 ms until it holds.
func (s *story) until(what string, holds func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return fmt.Errorf("never happened: %s", what)
		}
	}
	return nil
}

// ask runs a command, given as words, and returns its reply as text.
func (s *story) ask(x *server, command string) string {
	var args []any
	for _, w := range strings.Fields(command) {
		args = append(args, w)
	}
	v, err := x.conn.Do(s.ctx, args...)
	switch {
	case err != nil:
		return err.Error()
	case v.IsNull():
		return "(nil)"
	}
	return v.String()
}

// expect fails if a command has another reply.
func (s *story) expect(x *server, command, want string) error {
	if got := s.ask(x, command); got != want {
		return fmt.Errorf("%s: %s, expected %s", command, got, want)
	}
	return nil
}

// field returns a field of INFO.
func (s *story) field(x *server, name string) string {
	for line := range strings.Lines(s.ask(x, "INFO everything")) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && key == name {
			return value
		}
	}
	return ""
}

// files returns the contents of a server's append-only files.
func files(x *server) string {
	var all strings.Builder
	names, _ := filepath.Glob(filepath.Join(x.dir, "appendonlydir", "*.*"))
	for _, name := range names {
		b, _ := os.ReadFile(name)
		all.Write(b)
	}
	return all.String()
}

// del returns the DEL of a key in the form of append-only files.
func del(key string) string { return fmt.Sprintf("DEL\r\n$%d\r\n%s\r\n", len(key), key) }

// logged shows that the log has the deadline, and then a DEL.
func (s *story) logged() (err error) {
	s.say("append-only file")
	if s.master, err = s.start("master", "--appendonly", "yes", "--appendfsync", "always"); err != nil {
		return err
	}
	if err := s.expect(s.master, "SET session Ada PX 300", "OK"); err != nil {
		return err
	}
	if !strings.Contains(files(s.master), "PXAT") {
		return errors.New("the file has no absolute deadline")
	}
	s.say("  SET session Ada PX 300   is appended with its deadline as an instant: PXAT")
	if err := s.until("DEL session is appended", func() bool { return strings.Contains(files(s.master), del("session")) }); err != nil {
		return err
	}
	s.say("  300 ms later             DEL session is appended, without an access")
	return nil
}

// rewritten shows that a rewrite or a snapshot leaves out expired keys.
func (s *story) rewritten() error {
	s.say("rewrite")
	s.ask(s.master, "DEBUG SET-ACTIVE-EXPIRE 0") // an expired key stays until an access finds it
	s.ask(s.master, "SET stays for-ever")
	s.ask(s.master, "SET brief nothing PX 50")
	if err := s.until("the key has expired", func() bool { return s.ask(s.master, "DBSIZE") == "1" }); err != nil {
		return err
	}
	s.ask(s.master, "BGREWRITEAOF")
	if err := s.until("the files are rewritten", func() bool {
		all := files(s.master)
		return strings.Contains(all, "stays") && !strings.Contains(all, del("session"))
	}); err != nil {
		return err
	}
	if strings.Contains(files(s.master), "brief") {
		return errors.New("the rewritten files have an expired key")
	}
	s.say("  BGREWRITEAOF             leaves out the key that has expired and is still in memory")
	return nil
}

// replicated shows that a replica hides expired keys, and deletes them when its master
// does.
func (s *story) replicated() error {
	s.say("replica")
	replica, err := s.start("replica", "--replicaof", "127.0.0.1 "+s.master.port)
	if err != nil {
		return err
	}
	if err := s.until("the replica follows", func() bool { return s.field(replica, "master_link_status") == "up" }); err != nil {
		return err
	}
	s.ask(s.master, "SET lease worker-1 PX 200")
	if err := s.expect(s.master, "WAIT 1 0", "1"); err != nil { // until the replica has the key
		return err
	}
	if err := s.until("the replica hides the key", func() bool { return s.ask(replica, "GET lease") == "(nil)" }); err != nil {
		return err
	}
	if strings.Contains(files(s.master), del("lease")) {
		return errors.New("the master has deleted the key already")
	}
	s.say("  200 ms later             GET lease on the replica is nil, though the master has not deleted it yet")
	if err := s.expect(replica, "DBSIZE", "1"); err != nil {
		return err
	}
	if got := s.field(replica, "expired_keys"); got != "0" {
		return fmt.Errorf("the replica counts %s keys as expired", got)
	}
	s.ask(s.master, "GET lease") // the read finds the expired key and deletes it
	if err := s.until("the master's DEL is in the "+
		"replica's file", func() bool { return strings.Contains(files(replica), del("lease")) }); err != nil {
		return err
	}
	s.say("  the master deletes it    DEL lease comes to the replica with the stream, and is in its file as well")
	return nil
}

// loaded shows that a master does not load the expired keys of a snapshot, and that a
// replica loads them.
func (s *story) loaded() error {
	s.say("snapshot")
	var dump []byte
	if err := s.until("the snapshot has the key, which still lives", func() bool {
		s.ask(s.master, "SET soon gone PX 400")
		s.ask(s.master, "SAVE")
		dump, _ = os.ReadFile(filepath.Join(s.master.dir, "dump.rdb"))
		return strings.Contains(string(dump), "soon")
	}); err != nil {
		return err
	}
	if err := s.until("the key has expired", func() bool { return s.ask(s.master, "EXISTS soon") == "0" }); err != nil {
		return err
	}
	for _, role := range []struct {
		name string
		args []string
		tell string
		keys string // the number of keys that it loads from the file
	}{
		{"alone", nil, "a master does not load soon, which has expired since", "1"},
		{"follower", []string{"--replicaof", "127.0.0.1 1"}, "a replica loads it, hides it, and waits for its master's word", "2"},
	} {
		if err := os.MkdirAll(filepath.Join(s.dir, role.name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.dir, role.name, "dump.rdb"), dump, 0o644); err != nil {
			return err
		}
		x, err := s.start(role.name, append(role.args, "--appendonly", "no")...)
		if err != nil {
			return err
		}
		if got := s.field(x, "rdb_last_load_keys_loaded"); got != role.keys {
			return fmt.Errorf("%s: %s keys are loaded, expected %s", role.name, got, role.keys)
		}
		if err := s.expect(x, "DBSIZE", "1"); err != nil {
			return err
		}
		s.say("  %s", role.tell)
	}
	return nil
}
