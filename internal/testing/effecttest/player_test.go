package effecttest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// patience is the time that a reply, or an event that a line waits for, may take.
var patience = tier.Patience

// player plays sections on one process, and writes down what clients observe.
type player struct {
	main  *realserver.Process
	addr  string                         // of a server that runs already, instead of main
	peers map[string]*realserver.Process // spare ones, and those that run, by name
	spare []*realserver.Process
	conns map[string]*conn

	verbs   map[string]func(p *player, conn, rest string) error
	section *section
	options string // of each start
	free    int    // a port, where the options name one
	changed []string
	initial map[string]string
	last    string // text of the last reply
	seen    []string
}

type conn struct {
	net.Conn
	r *bufio.Reader
}

// newVerbs returns the lines of a section by their first word; [c] is the name of a connection,
// the first one's is empty. A name that begins with a peer's letter is of that peer.
func newVerbs() map[string]func(p *player, conn, rest string) error {
	return map[string]func(p *player, conn, rest string) error{
		">":       (*player).send,   // [c]> COMMAND: sends it, and writes down the reply
		"!":       (*player).quiet,  // [c]! COMMAND: sends it, and keeps the reply for "?"
		">>":      (*player).post,   // [c]>> COMMAND: sends it, and waits for nothing
		"<":       (*player).next,   // [c]<: writes down the next reply or push
		"raw":     (*player).raw,    // [c]raw "TEXT": sends bytes
		"closed":  (*player).closed, // [c]closed: waits for the end of a connection
		"until":   (*player).until,  // [c]until REGEXP : COMMAND: repeats it until the reply matches
		"?":       (*player).match,  // ? REGEXP: writes down the matches in the last reply
		"like":    (*player).like,   // like REGEXP: writes down whether the last reply matches
		"set":     (*player).set,    // set NAME VALUE: CONFIG SET, until the end of the section
		"files":   (*player).files,  // files GLOB: writes down the names, with # for digits
		"within":  (*player).within, // within GLOB : REGEXP: whether the files' text matches
		"await":   (*player).await,  // await GLOB : REGEXP: waits until the files' text matches
		"write":   (*player).write,  // write NAME "TEXT": a file
		"cut":     (*player).cut,    // cut GLOB N: takes N bytes off the files' end
		"restart": (*player).restart,
		"end":     (*player).end,     // end SIGNAL: sends it, and writes down the exit status
		"peer":    (*player).peer,    // peer LETTER OPTIONS: a second server of this kind
		"stop":    (*player).stop,    // stop LETTER: ends a peer
		"spare":   (*player).reserve, // spare LETTER: a port for a peer that does not run
		"leave":   (*player).leave,   // leave [c]: closes a connection from here
		"drain":   (*player).drain,   // [c]drain MARK: writes down what comes, up to a push or reply with MARK in it
		"dumped":  (*player).dumped,  // dumped FROM TO OPTIONS: RESTORE of what DUMP gives
		"alone":   func(*player, string, string) error { return nil },
	}
}

// infoPlayer returns a player for single lines on a server that runs.
func infoPlayer(t *testing.T, addr string) *player {
	t.Helper()
	return &player{addr: addr, conns: map[string]*conn{}}
}

// play plays a section, and returns what was observed. An error is one of the script or
// of the process.
func (p *player) play(s *section) (seen []string, err error) {
	p.section, p.seen, p.last = s, nil, ""
	for _, line := range s.lines {
		word, rest, _ := strings.Cut(line, " ")
		conn, verb := splitVerb(word)
		do := p.verbs[verb]
		if do == nil {
			return p.seen, fmt.Errorf("%s: there is no verb %q", s.at, word)
		}
		if err := do(p, conn, p.replace(rest)); err != nil {
			return p.seen, fmt.Errorf("%s: %s: %w", s.at, line, err)
		}
	}
	return p.seen, nil
}

func (p *player) see(format string, args ...any) {
	p.seen = append(p.seen, fmt.Sprintf(format, args...))
}

// replace puts in what the script cannot know.
func (p *player) replace(text string) string {
	text = strings.ReplaceAll(text, "{port}", strconv.Itoa(p.main.Port))
	text = strings.ReplaceAll(text, "{dir}", p.main.Dir)
	text = strings.ReplaceAll(text, "{free}", strconv.Itoa(p.free))
	for name, peer := range p.peers {
		text = strings.ReplaceAll(text, "{"+name+".port}", strconv.Itoa(peer.Port))
		text = strings.ReplaceAll(text, "{"+name+".dir}", peer.Dir)
	}
	return expand(text)
}

// process is the one that a connection's name belongs to.
func (p *player) process(name string) *realserver.Process {
	for letter, peer := range p.peers {
		if strings.HasPrefix(name, letter) {
			return peer
		}
	}
	return p.main
}

func (p *player) conn(name string) (*conn, error) {
	if c := p.conns[name]; c != nil {
		return c, nil
	}
	addr := p.addr
	if addr == "" {
		addr = p.process(name).Addr()
	}
	tcp, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	c := &conn{tcp, bufio.NewReaderSize(tcp, 1<<16)}
	p.conns[name] = c
	return c, nil
}

func (c *conn) read() (resp.Value, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return resp.Value{}, err
	}
	return wire.ReadValue(c.r)
}

func (p *player) post(name, line string) error {
	args, ok := wire.SplitArgs(line)
	if !ok || len(args) == 0 {
		return errors.New("unbalanced quotes")
	}
	c, err := p.conn(name)
	if err != nil {
		return err
	}
	_, _ = c.Write(wire.AppendCommand(nil, args...)) // a closed connection shows when it is read
	return nil
}

// next reads a reply. The end of the connection is an observation as well.
func (p *player) next(name, _ string) error {
	lines, err := p.receive(name)
	if err == nil {
		p.seen = append(p.seen, lines...)
	}
	return err
}

func (p *player) receive(name string) (lines []string, err error) {
	c, err := p.conn(name)
	if err != nil {
		return nil, err
	}
	v, err := c.read()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errors.New("no reply")
	case err != nil:
		lines = []string{"the connection is closed"}
	default:
		lines = transcript.Lines(v)
	}
	p.last = strings.Join(lines, "\n")
	if v.Kind == resp.KindBulk || v.Kind == resp.KindVerbatim {
		p.last = v.Str
	}
	return lines, nil
}

func (p *player) send(name, line string) error {
	if err := p.post(name, line); err != nil {
		return err
	}
	return p.next(name, "")
}

func (p *player) quiet(name, line string) error {
	if line != "" { // without a command it takes the next reply
		if err := p.post(name, line); err != nil {
			return err
		}
	}
	_, err := p.receive(name)
	return err
}

func (p *player) raw(name, text string) error {
	data, err := strconv.Unquote(text)
	if err != nil {
		return err
	}
	c, err := p.conn(name)
	if err == nil {
		_, _ = io.WriteString(c, data)
	}
	return err
}

func (p *player) closed(name, _ string) error {
	c, err := p.conn(name)
	if err != nil {
		return err
	}
	for {
		if _, err := c.read(); errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the connection stays open")
		} else if err != nil {
			break
		}
	}
	p.see("closed")
	return p.leave(name, "")
}

// leave closes a connection from here.
func (p *player) leave(name, rest string) error {
	if rest != "" {
		name = rest
	}
	if c := p.conns[name]; c != nil {
		_ = c.Close()
		delete(p.conns, name)
	}
	return nil
}

func (p *player) until(name, rest string) error {
	pattern, line, ok := strings.Cut(rest, " : ")
	re, err := regexp.Compile(pattern)
	if err != nil || !ok {
		return fmt.Errorf("until wants a pattern, and a command behind ' : ': %v", err)
	}
	return p.wait(func() (bool, error) {
		err := p.quiet(name, line)
		return re.MatchString(p.last), err
	})
}

// wait looks again and again until a thing has happened.
func (p *player) wait(happened func() (bool, error)) error {
	look := time.NewTicker(3 * time.Millisecond)
	defer look.Stop()
	for end := time.After(patience); ; {
		ok, err := happened()
		if ok || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-end:
			return fmt.Errorf("the event did not happen; the last reply is %.2000q", p.last)
		}
	}
}

func (p *player) match(_, pattern string) error {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	var found []string
	for _, m := range re.FindAllStringSubmatch(p.last, -1) {
		if len(m) > 1 {
			m = m[1:]
		}
		found = append(found, strings.Join(m, " "))
	}
	p.see("%s: %s", pattern, strings.Join(found, ", "))
	return nil
}

func (p *player) like(_, pattern string) error {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	if !re.MatchString(p.last) {
		p.see("%.300s, which is not like %s", p.last, pattern)
		return nil
	}
	p.see("like %s", pattern)
	return nil
}

func (p *player) set(_, rest string) error {
	args, ok := wire.SplitArgs(rest)
	if !ok || len(args) < 2 {
		return errors.New("set wants a name and a value")
	}
	if _, known := p.initial[args[0]]; !known {
		if err := p.quiet("admin", "CONFIG GET "+args[0]); err != nil {
			return err
		}
		name, value, ok := strings.Cut(p.last, "\n")
		if !ok {
			return fmt.Errorf("CONFIG GET %s: %q %q", args[0], name, p.last)
		}
		value = strings.TrimPrefix(value, "2) ")
		if v, err := strconv.Unquote(value); err == nil {
			value = v
		}
		p.initial[args[0]] = value
	}
	p.changed = append(p.changed, args[0])
	value := strings.Join(args[1:], " ")
	return p.send("admin", "CONFIG SET "+args[0]+" "+strconv.Quote(value))
}

// undo brings a process into the state that the next section expects.
func (p *player) undo() error {
	for name := range p.conns {
		_ = p.leave(name, "") // that of admin as well: the section may have had it closed
	}
	// The places of the others are free when the server has seen them go.
	err := p.wait(func() (bool, error) {
		err := p.quiet("admin", "PING")
		if err == nil && p.last != "PONG" {
			err = p.leave("admin", "")
		}
		return p.last == "PONG", err
	})
	if err != nil {
		return err
	}
	slices.Reverse(p.changed)
	for _, name := range p.changed {
		if err := p.quiet("admin", "CONFIG SET "+name+" "+strconv.Quote(p.initial[name])); err != nil {
			return err
		}
		if p.last != "OK" {
			return fmt.Errorf("CONFIG SET %s %q: %s", name, p.initial[name], p.last)
		}
	}
	p.changed = nil
	for _, line := range []string{"FLUSHALL", "CONFIG RESETSTAT", "SLOWLOG RESET", "LATENCY RESET", "ACL LOG RESET",
		"SCRIPT FLUSH", "FUNCTION FLUSH"} {
		if err := p.quiet("admin", line); err != nil {
			return err
		}
	}
	return p.until("admin", `connected_clients:1\D : INFO clients`)
}

var digits = regexp.MustCompile(`\d+`)

func (p *player) glob(pattern string) ([]string, error) {
	if filepath.IsAbs(pattern) {
		return filepath.Glob(pattern)
	}
	return filepath.Glob(filepath.Join(p.main.Dir, pattern))
}

func (p *player) files(_, pattern string) error {
	names, err := p.glob(pattern)
	var shown []string
	for _, n := range names {
		rel, _ := filepath.Rel(p.main.Dir, n)
		mode := ""
		if info, err := os.Lstat(n); err == nil && !info.Mode().IsRegular() {
			mode = " " + info.Mode().String()
		}
		shown = append(shown, digits.ReplaceAllString(rel, "#")+mode)
	}
	p.see("files %s: %s", filepath.Base(pattern), strings.Join(shown, ", "))
	return err
}

func (p *player) within(_, rest string) error {
	pattern, expr, ok := strings.Cut(rest, " : ")
	re, err := regexp.Compile(expr)
	if err != nil || !ok {
		return fmt.Errorf("within wants a pattern of names, and one of text: %v", err)
	}
	names, err := p.glob(pattern)
	found := 0
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			return err
		}
		if re.Match(text) {
			found++
		}
	}
	p.see("%s in %s: %d", expr, filepath.Base(pattern), found)
	return err
}

func (p *player) await(_, rest string) error {
	return p.wait(func() (bool, error) {
		before := len(p.seen)
		err := p.within("", rest)
		found := !strings.HasSuffix(p.seen[before], ": 0")
		p.seen = p.seen[:before]
		return found, err
	})
}

func (p *player) write(_, rest string) error {
	name, quoted, _ := strings.Cut(rest, " ")
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return err
	}
	path := filepath.Join(p.main.Dir, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

func (p *player) cut(_, rest string) error {
	pattern, n, _ := strings.Cut(rest, " ")
	less, err := strconv.ParseInt(n, 10, 64)
	names, err2 := p.glob(pattern)
	if err := errors.Join(err, err2); err != nil || len(names) != 1 {
		return fmt.Errorf("%d files: %w", len(names), err)
	}
	info, err := os.Stat(names[0])
	if err != nil {
		return err
	}
	return os.Truncate(names[0], info.Size()-less)
}

// begin starts a process with options, and waits until it answers.
func begin(proc *realserver.Process, options string) error {
	args, ok := wire.SplitArgs(options)
	if !ok {
		return fmt.Errorf("unbalanced quotes in %s", options)
	}
	all := append([]string{"--daemonize", "no", "--loglevel", "warning"}, args...)
	for _, o := range [][]string{{"--save", ""}, {"--appendonly", "no"}, {"--enable-debug-command", "yes"}} {
		if !slices.Contains(args, o[0]) {
			all = append(all, o...)
		}
	}
	return proc.Begin(all...)
}

// ready waits until a process answers PING, with any reply but LOADING, and reports false if
// it has ended.
func (p *player) ready(proc *realserver.Process) (running bool, err error) {
	err = p.wait(func() (bool, error) {
		select {
		case <-proc.Ended():
			return true, nil
		default:
		}
		tcp, err := net.DialTimeout("tcp", proc.Addr(), patience)
		if err != nil {
			return false, nil
		}
		defer tcp.Close()
		c := &conn{tcp, bufio.NewReader(tcp)}
		_, _ = io.WriteString(c, "PING\r\n")
		v, err := c.read()
		if err == nil && !strings.HasPrefix(v.Str, "LOADING") {
			running = true
		}
		return running, nil
	})
	return running, err
}

// restart starts the process again, with the options of the section and others. A process
// that is refused its start is an observation.
func (p *player) restart(_, more string) error {
	for name := range p.conns {
		if p.process(name) == p.main {
			_ = p.leave(name, "")
		}
	}
	p.main.Kill()
	if err := begin(p.main, p.replace(p.options)+" "+more); err != nil {
		return err
	}
	running, err := p.ready(p.main)
	if !running && err == nil {
		p.see("the start fails with status %d", p.main.Wait())
	}
	return err
}

var signals = map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}

func (p *player) end(_, signal string) error {
	if s, ok := signals[signal]; ok {
		proc, err := os.FindProcess(p.main.Pid())
		if err == nil {
			err = proc.Signal(s)
		}
		if err != nil {
			return err
		}
	} else if signal != "" {
		return fmt.Errorf("no signal %s", signal)
	}
	select {
	case <-p.main.Ended():
	case <-time.After(patience):
		return errors.New("the process goes on")
	}
	if signal != "KILL" {
		p.see("it has ended with status %d", p.main.Wait())
	}
	return nil
}

func (p *player) peer(_, rest string) error {
	name, options, _ := strings.Cut(rest, " ")
	proc := p.peers[name]
	if proc == nil {
		if len(p.spare) == 0 {
			return errors.New("too many peers")
		}
		proc = p.spare[0]
		p.spare, p.peers[name] = p.spare[1:], proc
	}
	proc.Kill()
	if err := begin(proc, options); err != nil {
		return err
	}
	running, err := p.ready(proc)
	if !running && err == nil {
		err = fmt.Errorf("the peer does not start: %s", proc.Said())
	}
	return err
}

func (p *player) reserve(_, name string) error {
	p.spare, p.peers[name] = p.spare[1:], p.spare[0]
	return nil
}

func (p *player) stop(_, name string) error {
	if p.peers[name] == nil {
		return errors.New("there is no such peer")
	}
	p.peers[name].Kill()
	return nil
}

func (p *player) drain(name, mark string) error {
	for {
		lines, err := p.receive(name)
		if err != nil {
			return err
		}
		text := strings.Join(lines, " ")
		p.see("%s", text)
		if strings.Contains(text, mark) {
			return nil
		}
	}
}

func (p *player) dumped(name, rest string) error {
	words := strings.Fields(rest)
	if err := p.quiet(name, "DUMP "+words[0]); err != nil {
		return err
	}
	c, err := p.conn(name)
	if err != nil {
		return err
	}
	_, _ = c.Write(wire.AppendCommand(nil, append([]string{"RESTORE", words[1], "0", p.last}, words[2:]...)...))
	return p.next(name, "")
}
