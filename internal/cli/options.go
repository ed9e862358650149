package cli

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/serverurl"
	"github.com/ebbdb/ebb/internal/wire"
)

// Format is the form in which replies are printed.
type Format uint8

// The formats. FormatAuto is FormatTTY on a terminal and FormatRaw elsewhere.
const (
	FormatAuto Format = iota
	FormatTTY         // (integer) 1, "text", 1) ...
	FormatRaw         // bytes as they are
	FormatCSV
	FormatJSON
	FormatQuotedJSON // JSON of text that is quoted as for FormatTTY: only ASCII
)

// Options are the flags and arguments of one run. The zero value, with Repeat
// 1, is `ebb cli` without arguments.
type Options struct {
	Host   string // default 127.0.0.1
	Port   int    // default 6379
	Socket string // path; overrides Host and Port
	DB     int

	User, Password string
	HavePassword   bool // Password is to be sent, even if empty
	PasswordInArgs bool // the password was in the argument list, where other users can see it
	AskPassword    bool // read it from standard input
	NoAuthWarning  bool

	Family    string // "4" or "6": the kind of IP address to try first
	Multipath bool   // Multipath TCP
	Cluster   bool   // follow MOVED and ASK

	Protocol int           // 2, 3, or 0 for the server's default (2; 3 with --json)
	Timeout  time.Duration // for connecting; default none
	TLS      TLSOptions

	Format        Format
	BulkDelimiter string // between elements in FormatRaw; default \n
	EndDelimiter  string // behind each reply in FormatRaw; default \n
	ShowPushes    *bool  // default: only on a terminal
	ErrorStatus   bool   // exit 1 on an error reply, and print it to standard error

	Repeat        int           // times to run the command, -1 for ever; default 1
	Interval      time.Duration // between them
	LastFromStdin bool          // -x
	TagFromStdin  string        // -X
	Command       []string

	RDB          string // file for a snapshot
	FunctionsRDB string // file for a snapshot of the functions alone

	Eval             string // file of a script; Command has its keys, a comma, and its arguments
	Debug, DebugSync bool   // run it under the debugger; in the server itself, not in a copy

	Pipe        bool
	PipeTimeout time.Duration // default 30 s; 0: none

	Scan      bool
	Pattern   string // default: every key
	ScanCount int
	ScanType  string

	Bigkeys, Memkeys, Hotkeys bool
	MemSamples                int    // elements of a key that MEMORY USAGE weighs; -1: the server's default
	HotCount                  int    // keys that --hotkeys shows; default 16
	Cursor                    string // where --keystats begins; default: at the beginning

	Latency, LatencyHistory, LatencyDist, Stat bool
	Intrinsic                                  time.Duration
	Help, Version                              bool
}

// TLSOptions configure TLS, if Enabled.
type TLSOptions struct {
	Enabled    bool
	Insecure   bool   // accept any certificate
	ServerName string // default: the host
	CACert     string // file; default: the system's roots
	CACertDir  string
	Cert, Key  string // files of the client's certificate
}

// addr returns the server as messages and the prompt name it.
func (o *Options) addr() string {
	if o.Socket != "" {
		return o.Socket
	}
	return net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
}

// flag is one row of the table of flags: how many values it takes, and what it
// does with them.
type flag struct {
	values int
	set    func(p *parser, v string) error
}

type parser struct {
	Options
	quoted        bool
	quotedPattern bool
}

func on(field func(*parser) *bool) flag {
	return flag{0, func(p *parser, _ string) error { *field(p) = true; return nil }}
}

func text(field func(*parser) *string) flag {
	return flag{1, func(p *parser, v string) error { *field(p) = v; return nil }}
}

func number(name string, field func(*parser) *int) flag {
	return flag{1, func(p *parser, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("Invalid value for %s: '%s' is not an integer.", name, v)
		}
		*field(p) = n
		return nil
	}}
}

func seconds(name string, field func(*parser) *time.Duration) flag {
	return flag{1, func(p *parser, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 || f > 1e9 {
			return fmt.Errorf("Invalid value for %s: '%s' is not a number of seconds.", name, v)
		}
		*field(p) = time.Duration(f * float64(time.Second))
		return nil
	}}
}

// positive returns a flag that refuses 0 seconds.
func positive(f flag) flag {
	return flag{1, func(p *parser, v string) error {
		if n, err := strconv.ParseFloat(v, 64); err == nil && n < 1e-3 {
			return fmt.Errorf("--intrinsic-latency takes a number of seconds of at least 0.001, not '%s'.", v)
		}
		return f.set(p, v)
	}}
}

func (p *parser) memkeysSamples(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return fmt.Errorf("--memkeys-samples takes the number of elements to weigh in each key, 0 for all, not '%s'.", v)
	}
	p.Memkeys, p.MemSamples = true, n
	return nil
}

func (p *parser) hotkeysCount(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxHot {
		return fmt.Errorf("--hotkeys-count takes a number of keys from 1 to %d, not '%s'.", maxHot, v)
	}
	p.Hotkeys, p.HotCount = true, n
	return nil
}

func format(f Format) flag {
	return flag{0, func(p *parser, _ string) error { p.Format = f; return nil }}
}

func password() flag {
	return flag{1, func(p *parser, v string) error {
		p.Password, p.HavePassword, p.PasswordInArgs = v, true, true
		return nil
	}}
}

// flags returns the table of all flags.
func flags() map[string]flag {
	all := connectionFlags()
	maps.Copy(all, commandFlags())
	maps.Copy(all, modeFlags())
	return all
}

// connectionFlags say which server it connects to, how, and as which user.
func connectionFlags() map[string]flag {
	return map[string]flag{
		"-h":                text(func(p *parser) *string { return &p.Host }),
		"-p":                number("-p", func(p *parser) *int { return &p.Port }),
		"-s":                text(func(p *parser) *string { return &p.Socket }),
		"-t":                seconds("-t", func(p *parser) *time.Duration { return &p.Timeout }),
		"-a":                password(),
		"--pass":            password(),
		"--user":            text(func(p *parser) *string { return &p.User }),
		"--askpass":         on(func(p *parser) *bool { return &p.AskPassword }),
		"--no-auth-warning": on(func(p *parser) *bool { return &p.NoAuthWarning }),
		"-u":                {1, (*parser).uri},
		"-n":                number("-n", func(p *parser) *int { return &p.DB }),
		"-4":                {0, func(p *parser, _ string) error { p.Family = "4"; return nil }},
		"-6":                {0, func(p *parser, _ string) error { p.Family = "6"; return nil }},
		"--mptcp":           on(func(p *parser) *bool { return &p.Multipath }),
		"-2":                {0, func(p *parser, _ string) error { p.Protocol = 2; return nil }},
		"-3":                {0, func(p *parser, _ string) error { p.Protocol = 3; return nil }},
		"-c":                on(func(p *parser) *bool { return &p.Cluster }),
		"--tls":             on(func(p *parser) *bool { return &p.TLS.Enabled }),
		"--insecure":        on(func(p *parser) *bool { return &p.TLS.Insecure }),
		"--sni":             text(func(p *parser) *string { return &p.TLS.ServerName }),
		"--cacert":          text(func(p *parser) *string { return &p.TLS.CACert }),
		"--cacertdir":       text(func(p *parser) *string { return &p.TLS.CACertDir }),
		"--cert":            text(func(p *parser) *string { return &p.TLS.Cert }),
		"--key":             text(func(p *parser) *string { return &p.TLS.Key }),
	}
}

// commandFlags say how a command is read and run, and how its reply is printed.
func commandFlags() map[string]flag {
	return map[string]flag{
		"-r":             number("-r", func(p *parser) *int { return &p.Repeat }),
		"-i":             seconds("-i", func(p *parser) *time.Duration { return &p.Interval }),
		"-x":             on(func(p *parser) *bool { return &p.LastFromStdin }),
		"-X":             text(func(p *parser) *string { return &p.TagFromStdin }),
		"-d":             text(func(p *parser) *string { return &p.BulkDelimiter }),
		"-D":             text(func(p *parser) *string { return &p.EndDelimiter }),
		"-e":             on(func(p *parser) *bool { return &p.ErrorStatus }),
		"--verbose":      {0, func(*parser, string) error { return nil }},
		"--raw":          format(FormatRaw),
		"--no-raw":       format(FormatTTY),
		"--csv":          format(FormatCSV),
		"--json":         format(FormatJSON),
		"--quoted-json":  format(FormatQuotedJSON),
		"--quoted-input": on(func(p *parser) *bool { return &p.quoted }),
		"--show-pushes":  {1, (*parser).pushes},
	}
}

// modeFlags are those of what it does in place of a command, such as a scan or a measurement.
func modeFlags() map[string]flag {
	return map[string]flag{
		"--rdb":               text(func(p *parser) *string { return &p.RDB }),
		"--functions-rdb":     text(func(p *parser) *string { return &p.FunctionsRDB }),
		"--ldb":               on(func(p *parser) *bool { return &p.Debug }),
		"--ldb-sync-mode":     {0, func(p *parser, _ string) error { p.Debug, p.DebugSync = true, true; return nil }},
		"--eval":              text(func(p *parser) *string { return &p.Eval }),
		"--pipe":              on(func(p *parser) *bool { return &p.Pipe }),
		"--pipe-timeout":      seconds("--pipe-timeout", func(p *parser) *time.Duration { return &p.PipeTimeout }),
		"--scan":              on(func(p *parser) *bool { return &p.Scan }),
		"--pattern":           text(func(p *parser) *string { return &p.Pattern }),
		"--quoted-pattern":    {1, func(p *parser, v string) error { p.Pattern, p.quotedPattern = v, true; return nil }},
		"--count":             number("--count", func(p *parser) *int { return &p.ScanCount }),
		"--type":              text(func(p *parser) *string { return &p.ScanType }),
		"--latency":           on(func(p *parser) *bool { return &p.Latency }),
		"--latency-history":   on(func(p *parser) *bool { return &p.LatencyHistory }),
		"--latency-dist":      on(func(p *parser) *bool { return &p.LatencyDist }),
		"--intrinsic-latency": positive(seconds("--intrinsic-latency", func(p *parser) *time.Duration { return &p.Intrinsic })),
		"--bigkeys":           on(func(p *parser) *bool { return &p.Bigkeys }),
		"--memkeys":           on(func(p *parser) *bool { return &p.Memkeys }),
		"--memkeys-samples":   {1, (*parser).memkeysSamples},
		"--hotkeys":           on(func(p *parser) *bool { return &p.Hotkeys }),
		"--hotkeys-count":     {1, (*parser).hotkeysCount},
		"--stat":              on(func(p *parser) *bool { return &p.Stat }),
		"--help":              on(func(p *parser) *bool { return &p.Help }),
		"-v":                  on(func(p *parser) *bool { return &p.Version }),
		"--version":           on(func(p *parser) *bool { return &p.Version }),
	}
}

// OptionNames returns the names of all flags, sorted.
func OptionNames() []string { return slices.Sorted(maps.Keys(flags())) }

// CommandWords returns the words of the command that stand behind the flags in args. value says that the last argument is a flag whose
// value comes next.
func CommandWords(args []string) (words []string, value bool) {
	table := flags()
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		n := 1 + table[args[0]].values // an unknown flag has none
		if len(args) < n {
			return nil, true
		}
		args = args[n:]
	}
	return args, false
}

// elsewhere are redis-cli's flags that ebb cli does not have.
const elsewhere = " --cluster --keystats --keystats-samples --top --cursor " +
	"--replica --slave --lru-test --tls-ciphers --tls-ciphersuites "

// ParseOptions reads redis-cli's command line: flags up to the first argument that is not
// a flag, then the command. REDISCLI_AUTH, or VALKEYCLI_AUTH, gives a password that no
// flag gave. Errors are complete sentences for the user.
func ParseOptions(args []string, getenv func(string) string) (Options, error) {
	p := parser{Options: Options{
		Host: "127.0.0.1", Port: 6379, Repeat: 1, PipeTimeout: 30 * time.Second,
		BulkDelimiter: "\n", EndDelimiter: "\n", MemSamples: -1, HotCount: 16,
	}}
	for _, name := range []string{"VALKEYCLI_AUTH", "REDISCLI_AUTH"} {
		if auth := getenv(name); auth != "" {
			p.Password, p.HavePassword = auth, true
		}
	}
	if len(args) == 1 && args[0] == "-h" {
		p.Help = true
		return p.Options, nil
	}
	table := flags()
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := args[0]
		f, ok := table[name]
		if !ok && strings.Contains(elsewhere, " "+name+" ") {
			return Options{}, fmt.Errorf("ebb cli does not have '%s'; redis-cli does, and works with the same server.", name)
		}
		if !ok || len(args) <= f.values {
			return Options{}, fmt.Errorf("Unrecognized option or bad number of args for: '%s'", name)
		}
		value := ""
		if f.values == 1 {
			value = args[1]
		}
		if err := f.set(&p, value); err != nil {
			return Options{}, err
		}
		args = args[1+f.values:]
	}
	p.Command = append([]string(nil), args...)
	return p.finish()
}

// finish removes quoting, and does the checks that need all flags.
func (p *parser) finish() (Options, error) {
	bad := errors.New("Invalid quoted string")
	if p.quotedPattern {
		s, ok := unquote(p.Pattern)
		if !ok {
			return Options{}, bad
		}
		p.Pattern = s
	}
	if p.quoted {
		for i, a := range p.Command {
			s, ok := unquote(a)
			if !ok {
				return Options{}, bad
			}
			p.Command[i] = s
		}
	}
	if p.LastFromStdin && p.TagFromStdin != "" {
		return Options{}, errors.New("Options -x and -X are mutually exclusive.")
	}
	if (p.TLS.Cert == "") != (p.TLS.Key == "") {
		return Options{}, errors.New("Options --cert and --key must be given together.")
	}
	if p.Debug && p.Eval == "" {
		return Options{}, errors.New("Options --ldb and --ldb-sync-mode require --eval.")
	}
	if p.Port < 0 || p.Port > 65535 {
		return Options{}, fmt.Errorf("Invalid value for -p: '%d' is not a port, which is a number from 0 to 65535.", p.Port)
	}
	if p.Protocol == 0 && (p.Format == FormatJSON || p.Format == FormatQuotedJSON) {
		p.Protocol = 3
	}
	return p.Options, nil
}

func (p *parser) pushes(v string) error {
	yes := strings.HasPrefix(strings.ToLower(v), "y")
	if !yes && !strings.HasPrefix(strings.ToLower(v), "n") {
		return fmt.Errorf("Unknown --show-pushes value '%s' (valid: '[y]es', '[n]o')", v)
	}
	p.ShowPushes = &yes
	return nil
}

// uri parses the URL of a server, in all its forms.
func (p *parser) uri(v string) error {
	s, err := serverurl.Parse(v)
	if err != nil {
		return fmt.Errorf("Invalid URI: %w", err)
	}
	p.TLS.Enabled = p.TLS.Enabled || s.TLS
	p.TLS.Insecure = p.TLS.Insecure || s.Insecure()
	if s.User != "" {
		p.User = s.User
	}
	if s.HavePassword {
		p.Password, p.HavePassword, p.PasswordInArgs = s.Password, true, true
	}
	if s.Socket != "" {
		p.Socket = s.Socket
	}
	if s.Host != "" {
		p.Host, p.Socket = s.Host, ""
	}
	if s.Port != "" {
		p.Port, _ = strconv.Atoi(s.Port) // Parse has checked it
	}
	if s.HaveDB {
		p.DB = s.DB
	}
	if s.Protocol != 0 {
		p.Protocol = s.Protocol
	}
	return nil
}

// unquote reads an argument that may be quoted as a whole.
func unquote(s string) (string, bool) {
	words, ok := wire.SplitArgs(s)
	if !ok || len(words) != 1 {
		return "", false
	}
	return words[0], true
}
