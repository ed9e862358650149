// Package doctor examines a running server of the Redis family: ebb, Redis or Valkey. Each finding says what is, why
// it matters, and the command that corrects it. It reads INFO, CONFIG GET and a few other replies, and changes
// nothing.
//
// Start reading at Examine; checks.go has the table of checks.
package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/disk"
)

// Grade is the urgency of a finding.
type Grade uint8

// The grades. The exit status of `ebb doctor` is the number of the worst.
const (
	OK   Grade = iota
	Look       // may be intended, and is a risk if not
	Act        // something fails, or will
)

func (g Grade) String() string { return [...]string{"ok", "look", "act"}[g] }

// MarshalText writes the grade as its word.
func (g Grade) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Finding is the result of one check.
type Finding struct {
	Grade Grade  `json:"grade"`
	Area  string `json:"area"`
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
	// Fix has commands that correct it, separated by "; ". Each can be sent as it stands: to the server, or to a shell of its machine
	// if it begins with a small letter.
	Fix string `json:"fix,omitempty"`
	How string `json:"how,omitempty"` // what else to do, in words
}

// Options say what Examine may look at besides the connection.
type Options struct {
	// Local is for a server on this machine: the settings of the kernel count too.
	Local bool
	// Certificates are those that the server showed in the TLS handshake, its own first.
	Certificates []*x509.Certificate
	// Clock returns the time; default time.Now.
	Clock func() time.Time
	// Root is the root of the file system for Local; default "/".
	Root string
	// Free returns the free bytes of a directory's file system for Local, -1 if the system does not say; default that
	// of internal/disk.
	Free func(dir string) (int64, error)
	// Reply is the time that the server may take for each reply; default 15 s.
	Reply time.Duration
	// DB is the database of the connection.
	DB int
	// Database connects to another database of the server; nil: the checks look at that of the connection alone.
	Database func(ctx context.Context, db int) (*conn.Conn, error)
}

// Examine asks a server and returns a finding for each check, in the order of the areas. It returns
// an error if the server does not reply, at first or later. What the connection's user may not ask is a finding.
func Examine(ctx context.Context, c *conn.Conn, o Options) ([]Finding, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Root, o.Reply = cmp.Or(o.Root, "/"), cmp.Or(o.Reply, 15*time.Second)
	if o.Free == nil {
		o.Free = disk.OS().Free
	}
	if err := Replies(ctx, c); err != nil {
		return nil, err
	}
	f := &facts{ctx: ctx, c: c, Options: o, config: map[string]string{}, info: map[string]string{}}
	var found []Finding
	err := f.read()
	if refused, ok := errors.AsType[conn.ReplyError](err); ok && refused.Code() == "BUSY" {
		return one(Act, "server", "a script or a function runs for long: "+refused.Error(), "no other command runs meanwhile",
			"SCRIPT KILL", "FUNCTION KILL ends a function; both end only one that has written nothing, else wait"), nil
	}
	if err != nil {
		found = append(found, Finding{Grade: Look, Area: "access", What: "this user may not ask everything: " + err.Error(),
			Why: "checks without their data are left out", How: "connect as a user with +info +config|get +slowlog|get +acl|getuser " +
				"+pubsub|channels +client|list +time +scan +type +llen +hlen +scard +zcard +xlen"})
	}
	for _, check := range checks {
		found = append(found, check(f)...)
	}
	if f.lost != nil {
		return nil, f.lost
	}
	return found, nil
}

// Replies returns nil if the server replies to PING, also with an error that Answers knows.
func Replies(ctx context.Context, c *conn.Conn) error {
	if err := c.Ping(ctx); !Answers(err) {
		return err
	}
	return nil
}

// Answers reports whether an error of PING is one of a server that runs. Servers refuse PING too while they refuse writes (MISCONF) or
// reads (MASTERDOWN), while they load, and while a script runs for long: such a server is one that needs an examination. A user may
// lack the right to PING.
func Answers(err error) bool {
	refused, ok := errors.AsType[conn.ReplyError](err)
	return ok && slices.Contains([]string{"MISCONF", "MASTERDOWN", "NOPERM", "LOADING", "BUSY"}, refused.Code())
}

// Worst returns the worst grade of findings.
func Worst(found []Finding) Grade {
	worst := OK
	for _, f := range found {
		worst = max(worst, f.Grade)
	}
	return worst
}

// Print writes findings for people: a line each, and under those that are not ok why it matters and what corrects it.
func Print(w io.Writer, found []Finding) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found {
		_, _ = fmt.Fprintf(t, "%-4s\t%s\t%s\n", f.Grade, f.Area, f.What)
		if f.Grade == OK {
			continue
		}
		if f.Why != "" {
			_, _ = fmt.Fprintf(t, "\t\t  why: %s\n", f.Why)
		}
		if f.Fix != "" {
			_, _ = fmt.Fprintf(t, "\t\t  fix: %s\n", f.Fix)
		}
		if f.How != "" {
			_, _ = fmt.Fprintf(t, "\t\t  how: %s\n", f.How)
		}
	}
	return t.Flush()
}

// PrintJSON writes findings as one JSON array.
func PrintJSON(w io.Writer, found []Finding) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(found)
}

// facts are the data that the checks examine.
type facts struct {
	Options
	ctx    context.Context //nolint:containedctx // of the one call of Examine
	c      *conn.Conn
	lost   error // the connection's, after which it is not used
	info   map[string]string
	config map[string]string

	product string // ebb, redis or valkey
}

// Info returns the fields of a reply to INFO.
func Info(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Product returns what a server is by its fields of INFO: ebb, valkey or redis. The field <product>_version has its version.
func Product(info map[string]string) string {
	for _, p := range []string{"ebb", "valkey"} {
		if info[p+"_version"] != "" {
			return p
		}
	}
	return "redis"
}

func (f *facts) read() error {
	info, err := f.do("INFO", "everything")
	if err != nil {
		return fmt.Errorf("INFO: %w", err)
	}
	f.info = Info(info.String())
	f.product = Product(f.info)
	config, err := f.do("CONFIG", "GET", "*")
	if err != nil {
		return fmt.Errorf("CONFIG GET: %w", err)
	}
	for i := 0; i+1 < len(config.Elems); i += 2 {
		f.config[config.Elems[i].String()] = config.Elems[i+1].String()
	}
	return nil
}

// do runs a command. An error that is not the server's reply ends the examination.
func (f *facts) do(args ...any) (conn.Value, error) {
	if f.lost != nil {
		return conn.Value{}, f.lost
	}
	within, cancel := context.WithTimeout(f.ctx, f.Reply)
	defer cancel()
	v, err := f.c.Do(within, args...)
	if err == nil {
		err = v.Err()
	}
	if _, refused := errors.AsType[conn.ReplyError](err); err == nil || refused {
		return v, err
	}
	if f.lost = err; f.ctx.Err() == nil && within.Err() != nil {
		f.lost = fmt.Errorf("no reply to %v within %v, after replies to earlier questions: its clients may be paused (CLIENT PAUSE), "+
			"a command runs for long, or the server hangs", args[0], f.Reply)
	}
	return v, f.lost
}

// num returns a number of INFO, 0 if there is none.
func (f *facts) num(name string) float64 { return number(f.info[name]) }

// setting returns a number of the configuration, 0 if there is none.
func (f *facts) setting(name string) float64 { return number(f.config[name]) }

func number(s string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	return n
}

// all runs commands in one round trip, and returns their replies; none if the connection fails.
func (f *facts) all(b *conn.Batch) []conn.Value {
	if f.lost != nil || b.Len() == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(f.ctx, f.Reply)
	defer cancel()
	replies, err := f.c.Pipeline(within, b)
	if f.lost = err; err != nil && f.ctx.Err() == nil && within.Err() != nil {
		f.lost = fmt.Errorf("no reply to %d commands within %v, after replies to earlier questions", b.Len(), f.Reply)
	}
	return replies
}

// ask runs a command whose error only means that a check is left out.
func (f *facts) ask(args ...any) (conn.Value, bool) {
	v, err := f.do(args...)
	return v, err == nil
}

func size(bytes float64) string {
	for _, u := range []struct {
		name string
		n    float64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if bytes >= u.n {
			return fmt.Sprintf("%.1f %s", bytes/u.n, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", bytes)
}
