package luafuzz

import (
	"bufio"
	_ "embed" // for the parts of a run that are written in Lua
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
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

//go:embed harness.lua
var harness string

//go:embed stock.lua
var stock string

// Machine is something that runs programs.
type Machine interface {
	// Run runs the programs in turn and returns what each printed. The error is ErrTimeout
	// if one of them took longer than patience.
	Run(requests []string) ([]string, error)
	Close()
}

// ErrTimeout is the error of Run if a program does not end.
var ErrTimeout = errors.New("a program does not end")

// tooMany is the output of a machine for a program that exceeded its limit of steps.
const tooMany = "too many steps"

// patience is the time limit of the programs of one Run, five seconds on a quiet machine. A program that exceeds it is skipped, and some
// programs never end.
var patience = tier.Patience / 12

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

// mostSteps is well above the limit for lua5.1 (see stock.lua), because lua5.1 counts
// steps differently. tickSteps is how often the machine counts them. It also calls the interrupt function
// while it counts the memory of a program, so one call alone says nothing.
const (
	mostSteps = 50_000_000
	tickSteps = 100_000
)

var errSteps = errors.New(tooMany)

// Run runs each program in a new State. It never returns an error.
func (Ours) Run(requests []string) ([]string, error) {
	answers := make([]string, len(requests))
	for i, r := range requests {
		answers[i] = runOurs(r)
	}
	return answers, nil
}

func (Ours) Close() {}

// compiled returns the compiled harness, under the chunk name of EVAL.
var compiled = sync.OnceValues(func() (*lua.Prototype, error) {
	return lua.Compile(harness+"\nlocal answer = run(...)\nreturn answer", "=user_script")
})

// runOurs runs one program. It returns a panic as output, so that Shrink can reduce it
// like any other difference.
func runOurs(request string) (answer string) {
	defer func() {
		if r := recover(); r != nil {
			answer = fmt.Sprint("panic: ", r)
		}
	}()
	s := lua.New()
	s.OpenLibs()
	s.SetMemoryLimit(1 << 28)
	ticks := 0
	s.SetInterrupt(tickSteps, func() error {
		if ticks++; ticks > mostSteps/tickSteps {
			return errSteps
		}
		return nil
	})
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

// Stock is Debian's lua5.1: one process that gets programs over a pipe.
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

// start starts lua5.1 with a limit on its memory, because a program may allocate any
// amount. The program of the command line is gone from the stack when a request runs, as
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

// Run runs the programs in the process. After an error it starts a new process.
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
			_ = s.cmd.Process.Kill() // the writer must not wait for a process that no longer reads
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

// Redis is the Machine that runs programs by EVAL on a redis-server.
type Redis struct {
	addr  string
	again func() // restarts the server
	conn  net.Conn
	r     *bufio.Reader
	sha   string
}

// evalHarness runs each of its arguments.
const evalHarness = "\nlocal answers = {}\nfor i = 1, #ARGV do answers[i] = run(ARGV[i]) end\nreturn answers"

// NewRedis connects to a redis-server. The function again kills it and starts it at the
// same address, which is the only way to end a script within a long call of C's library.
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
	if _, err := r.conn.Write(wire.AppendCommand(nil, args...)); err != nil {
		return resp.Value{}, err
	}
	v, err := wire.ReadValue(r.r)
	if err == nil {
		err = v.Err()
	}
	return v, err
}

// Run runs the programs. It kills a script that does not end, and restarts the server if
// that does not help.
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
