package commands

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

// These are MIGRATE's errors.
const (
	errMigrateKeys    = command.ReplyError("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")
	errMigrateConnect = command.ReplyError("IOERR error or timeout connecting to the client")
	errMigrateWrite   = command.ReplyError("IOERR error or timeout writing to target instance")
	errMigrateRead    = command.ReplyError("IOERR error or timeout reading to target instance")
)

// migrateTimeout is the timeout of a request whose own is 0 or negative.
const migrateTimeout = time.Second

var specMigrate = command.Spec{
	Name: "migrate", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(N) where N is the size of the values.",
	Summary: "Moves keys to another server, ebb, Redis or Valkey. Deletes them here when the other server has acknowledged them.",
	Flags:   command.Write | command.Slow | command.Reveals,
	Args: []command.Arg{command.Str("host"), command.Int("port"), command.OneOf("key_or_empty_string", command.Key("key",
		command.KeyRW|command.Access|command.Delete), command.Token(`""`).As("empty_string")),
		command.Int("destination-db"), command.Int("timeout"), command.Opt(command.Token("COPY").Since("3.0.0")),
		command.Opt(command.Token("REPLACE").Since("3.0.0")),
		command.Opt(command.OneOf("authentication", command.Opt(command.TokenArg("AUTH", command.Str("password"))).Since("4.0.7"),
			command.Opt(command.Block("AUTH2", command.Str("username"), command.Str("password")).As("username_password")).Since("6.0.0"))),
		command.Opt(command.TokenArg("KEYS", command.ManyKeys("key",
			command.KeyRW|command.Access|command.Delete|command.Incomplete)).Since("3.0.6"))},
	Categories: command.CatDangerous,
	Tips:       []string{"nondeterministic_output"},
	History: []command.Change{{Since: "3.0.0", Text: "Added the `COPY` and `REPLACE` options."},
		{Since: "3.0.6", Text: "Added the `KEYS` option."},
		{Since: "4.0.7", Text: "Added the `AUTH` option."}, {Since: "6.0.0", Text: "Added the `AUTH2` option."}},
	KeySpecs: []command.KeySpec{
		{Flags: command.KeyRW | command.Access | command.Delete, Begin: command.BeginIndex, Index: 3, Find: command.FindRange, Step: 1},
		{Flags: command.KeyRW | command.Access | command.Delete | command.Incomplete, Begin: command.BeginKeyword, Keyword: "KEYS", Index: -2,
			Find: command.FindRange, Last: -1, Step: 1}},
	KeyOptions: &command.KeyOptions{First: command.KeyRef{Pos: 3, Flags: command.KeyRW | command.Access | command.Delete},
		Instead: true, From: 6,
		Options: []command.KeyOption{{Word: "KEYS", Args: -1,
			Key: command.KeyRW | command.Access | command.Delete | command.Incomplete}, {Word: "AUTH", Args: 1},
			{Word: "AUTH2", Args: 2}}},
	Replies: "OK, or NOKEY if none of the keys exists. The timeout is in ms, and applies to each step of the transfer. " +
		"While it lasts no other client sees or changes the keys; commands on other keys of the same shards wait as well.",
	Examples: `
> MIGRATE 127.0.0.1 6380 nothing 0 1000
NOKEY
> MIGRATE 127.0.0.1 6380 k 0 1000 KEYS a b
(error) ERR When using MIGRATE KEYS option, the key argument must be set to the empty string
`,
	Run: runMigrate,
}

// migration holds the arguments of a MIGRATE.
type migration struct {
	addr    string
	db      int64
	timeout time.Duration
	copy    bool
	replace bool
	auth    [][]byte // AUTH's arguments
	keys    [][]byte
}

func runMigrate(c *command.Ctx) error {
	m, err := parseMigrate(c.Args)
	if err != nil {
		return err
	}

	keys := m.keys[:0:0]
	for _, key := range m.keys {
		if _, ok := c.Tx.Lookup(key); ok {
			keys = append(keys, key)
		}
	}
	if m.keys = keys; len(keys) == 0 {
		c.Out.Simple("NOKEY")
		return nil
	}
	if err := m.run(c.Host.Context(), c.Tx); err != nil {
		return err
	}

	c.Out.OK()
	return nil
}

func parseMigrate(args [][]byte) (*migration, error) {
	m := &migration{addr: net.JoinHostPort(string(args[1]), string(args[2])), keys: args[3:4]}
options:
	for i := 6; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case command.EqualFold(args[i], "COPY"):
			m.copy = true
		case command.EqualFold(args[i], "REPLACE"):
			m.replace = true
		case command.EqualFold(args[i], "AUTH") && more >= 1:
			m.auth = args[i+1 : i+2]
			i++
		case command.EqualFold(args[i], "AUTH2") && more >= 2:
			m.auth = args[i+1 : i+3]
			i += 2
		case command.EqualFold(args[i], "KEYS"):
			if len(args[3]) > 0 {
				return nil, errMigrateKeys
			}
			m.keys = args[i+1:]
			break options
		default:
			return nil, command.ErrSyntax
		}
	}
	timeout, ok := numeral.ParseInt(args[5])
	if ok {
		m.db, ok = numeral.ParseInt(args[4])
	}
	if !ok {
		return nil, command.ErrNotInteger
	}
	m.timeout = time.Duration(min(timeout, int64(time.Hour*24*365/time.Millisecond))) * time.Millisecond
	if timeout <= 0 {
		m.timeout = migrateTimeout
	}
	return m, nil
}

// target is a connection to another server. Each step on it has the timeout.
type target struct {
	net.Conn
	timeout time.Duration
}

func (t target) Read(b []byte) (int, error) {
	if err := t.SetReadDeadline(time.Now().Add(t.timeout)); err != nil {
		return 0, err
	}
	return t.Conn.Read(b)
}

func (t target) Write(b []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(t.timeout)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// run moves the keys, all of which exist. Their shards stay locked until it returns, so that it deletes
// exactly the data that has arrived. It returns as soon as ctx ends.
func (m *migration) run(ctx context.Context, tx *engine.Tx) error {
	dialer := net.Dialer{Timeout: m.timeout}
	conn, err := dialer.DialContext(ctx, "tcp", m.addr)
	if err != nil {
		return dialError(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	t := target{conn, m.timeout}
	if err := m.send(bufio.NewWriterSize(t, 64<<10), tx); err != nil {
		return errMigrateWrite
	}
	return m.settle(bufio.NewReader(t), tx)
}

// dialError returns Redis's error: Redis does not wait for a connection to be refused, but gets
// that error when it writes.
func dialError(err error) error {
	var name *net.DNSError
	var e net.Error
	if errors.As(err, &name) || errors.As(err, &e) && e.Timeout() {
		return errMigrateConnect
	}
	return errMigrateWrite
}

// send writes all requests: AUTH, SELECT, and a RESTORE for each key.
func (m *migration) send(w *bufio.Writer, tx *engine.Tx) error {
	var req, payload []byte
	if m.auth != nil {
		req = wire.AppendCommand(req, append([][]byte{[]byte("AUTH")}, m.auth...)...)
	}
	req = wire.AppendCommand(req, []byte("SELECT"), strconv.AppendInt(nil, m.db, 10))
	for _, key := range m.keys {
		payload, _ = tx.Dump(payload[:0], key)
		ttl := int64(0)
		if k, _ := tx.Lookup(key); k.Deadline() != 0 {
			ttl = max(k.Deadline()-tx.Millis(), 1)
		}
		args := [][]byte{[]byte("RESTORE"), key, strconv.AppendInt(nil, ttl, 10), payload, []byte("REPLACE")}
		if !m.replace {
			args = args[:4]
		}
		if _, err := w.Write(wire.AppendCommand(req, args...)); err != nil {
			return err
		}
		req = req[:0]
	}
	return w.Flush()
}

// settle reads the replies and deletes the keys that the target has stored. It returns the first error, which
// becomes MIGRATE's reply; other keys may have been moved nevertheless.
func (m *migration) settle(r *bufio.Reader, tx *engine.Tx) (failed error) {
	answer := func() (ok bool, err error) {
		v, err := wire.ReadValue(r)
		if err != nil {
			return false, errMigrateRead
		}
		if e := v.Err(); e != nil {
			if failed == nil {
				failed = command.ReplyError("ERR Target instance replied with error: " + v.Str)
			}
			return false, nil
		}
		return true, nil
	}
	greetings := 1
	if m.auth != nil {
		greetings++
	}
	for range greetings {
		if _, err := answer(); err != nil {
			return err
		}
	}
	stranger := failed != nil // the target rejects our login, so no reply confirms a key
	for _, key := range m.keys {
		ok, err := answer()
		if err != nil {
			return err
		}
		if ok && !stranger && !m.copy {
			tx.Del(key)
		}
	}
	return failed
}
