package luafuzz

import (
	"bufio"
	_ "embed" // the parts of a run that are written in Lua
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/resp"
)

//go:embed harness.lua
var harness string

//go:embed stock.lua
var stock string

// Machine is something that runs programs.
type Machine interface {
	// Run runs the programs in turn and returns what each printed. ErrTimeout
	// says that one of them took longer than patience.
	Run(requests []string) ([]string, error)
	Close()
}

// ErrTimeout is what Run returns if a program does not end.
var ErrTimeout = errors.New("a program does not end")

// tooMany is what a machine answers in the place of what a program printed that
// took more steps than it may.
const tooMany = "too many steps"

// patience is how long programs that are run together may take.
const patience = 5 * time.Second

// Mode says what a Machine does with a program.
type Mode byte

const (
	Run     Mode = 'R'
	Script  Mode = 'S' // run with what redis-server lets scripts see
	Compile Mode = 'C' // compiled, not run
)

// Request returns a program's text for a Machine.
func Request(m Mode, text string) string { return string(rune(m)) + text }

// Ours is the machine of package lua. Each program has a State of its own.
type Ours struct{}

// mostSteps is well above what lua5.1 is allowed (see stock.lua), as steps are
// counted otherwise.
const mostSteps = 50_000_000

var errSteps = errors.New(tooMany)

// Run returns no error.
func (Ours) Run(requests []string) ([]string, error) {
	answers := make([]string, len(requests))
	for i, r := range requests {
		answers[i] = runOurs(r)
	}
	return answers, nil
}

func (Ours) Close() {}

// compiled is the harness, under the name that EVAL gives to what it runs.
var compiled = sync.OnceValues(func() (*lua.Prototype, error) {
	return lua.Compile(harness+"\nlocal answer = run(...)\nreturn answer", "=user_script")
})

// runOurs runs one program. A panic is an answer as well, so that it can be made
// smaller like any difference.
func runOurs(request string) (answer string) {
	defer func() {
		if r := recover(); r != nil {
			answer = fmt.Sprint("panic: ", r)
		}
	}()
	s := lua.New()
	s.OpenLibs()
	s.SetMemoryLimit(1 << 28)
	s.SetInterrupt(mostSteps, func() error { return errSteps })
	f, err := compiled()
	if err != nil {
		return "harness: " + err.Error()
	}
	results, err := s.Main().Call(lua.ClosureValue(s.Bind(f, s.Globals())), lua.String(request))
	if err != nil {
		return "outside: " + err.Error()
	}
	answer, _ = results[0].AsString()
	return answer
}

// Stock is Debian's lua5.1: one process that is sent programs over a pipe.
type Stock struct {
	path string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// NewStock starts lua5.1, which must be installed.
func NewStock() (*Stock, error) {
	path, err := exec.LookPath("lua5.1")
	if err != nil {
		return nil, err
	}
	s := &Stock{path: path}
	return s, s.start()
}

// start bounds the process's memory, as a program may ask for any amount. The
// program of the command line is gone from the stack when a request runs, as
// error's levels must not find there what the other machines do not have.
func (s *Stock) start() (err error) {
	program := "return loadstring([====[" + harness + stock + "]====], '=user_script')()"
	s.cmd = exec.Command("sh", "-c", `ulimit -v 600000; exec "$0" -e "$1"`, s.path, program)
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReaderSize(out, 1<<16)
	return s.cmd.Start()
}

// Close ends the process.
func (s *Stock) Close() {
	_ = s.in.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Run starts the process anew after an error.
func (s *Stock) Run(requests []string) ([]string, error) {
	process := s.cmd.Process
	timer := time.AfterFunc(patience, func() { _ = process.Kill() })
	answers, err := s.exchange(requests)
	if !timer.Stop() {
		err = ErrTimeout
	}
	if err == nil {
		return answers, nil
	}
	s.Close()
	return nil, errors.Join(err, s.start())
}

func (s *Stock) exchange(requests []string) ([]string, error) {
	var b strings.Builder
	fmt.Fprintln(&b, len(requests))
	for _, r := range requests {
		fmt.Fprintf(&b, "%d\n%s", len(r), r)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(s.in, b.String())
		sent <- err
	}()
	answers, err := s.answers(len(requests))
	return answers, errors.Join(err, <-sent)
}

func (s *Stock) answers(n int) ([]string, error) {
	answers := make([]string, n)
	for i := range answers {
		line, err := s.out.ReadString('\n')
		if err != nil {
			_ = s.cmd.Process.Kill() // the writer must not wait for who reads no more
			return nil, err
		}
		size, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("lua5.1 wrote %q", line)
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(s.out, text); err != nil {
			return nil, err
		}
		answers[i] = string(text)
	}
	return answers, nil
}

// Redis is EVAL on a redis-server.
type Redis struct {
	addr  string
	again func() // starts the server anew
	conn  net.Conn
	r     *bufio.Reader
	sha   string
}

// evalHarness runs each of its arguments.
const evalHarness = "\nlocal answers = {}\nfor i = 1, #ARGV do answers[i] = run(ARGV[i]) end\nreturn answers"

// NewRedis connects to a redis-server, which again kills and starts at the same
// address: a script that is within a long call of C's library cannot be ended else.
func NewRedis(addr string, again func()) (*Redis, error) {
	r := &Redis{addr: addr, again: again}
	return r, r.start()
}

func (r *Redis) start() error {
	if err := r.dial(); err != nil {
		return err
	}
	v, err := r.do("SCRIPT", "LOAD", harness+evalHarness)
	r.sha = v.Str
	return err
}

func (r *Redis) dial() (err error) {
	if r.conn, err = net.Dial("tcp", r.addr); err == nil {
		r.r = bufio.NewReaderSize(r.conn, 1<<16)
	}
	return err
}

// Close closes the connection.
func (r *Redis) Close() { _ = r.conn.Close() }

func (r *Redis) do(args ...string) (resp.Value, error) {
	if _, err := r.conn.Write(resp.AppendCommand(nil, args...)); err != nil {
		return resp.Value{}, err
	}
	v, err := resp.ReadValue(r.r)
	if err == nil {
		err = v.Err()
	}
	return v, err
}

// Run kills a script that does not end, and if that does not help the server.
func (r *Redis) Run(requests []string) ([]string, error) {
	conn := r.conn
	kill := time.AfterFunc(patience, func() {
		c := &Redis{addr: r.addr}
		if c.dial() == nil {
			deaf := time.AfterFunc(patience, c.Close)
			_, _ = c.do("SCRIPT", "KILL")
			deaf.Stop()
			c.Close()
		}
	})
	leave := time.AfterFunc(2*patience, func() { _ = conn.Close() })
	v, err := r.do(append([]string{"EVALSHA", r.sha, "0"}, requests...)...)
	ended, left := !kill.Stop(), !leave.Stop()
	switch {
	case left:
		r.again()
		return nil, errors.Join(ErrTimeout, r.start())
	case ended:
		return nil, ErrTimeout
	}
	if err != nil {
		return nil, err
	}
	answers := make([]string, len(v.Elems))
	for i, x := range v.Elems {
		answers[i] = x.Str
	}
	if len(answers) != len(requests) {
		return nil, fmt.Errorf("redis-server answered %d of %d programs", len(answers), len(requests))
	}
	return answers, nil
}
