package script

import (
	"crypto/sha1"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
)

// The functions of the table redis are in groups, in the order in which Redis creates
// them.

// callAPI returns the functions that run commands.
func (m *machine) callAPI() []field {
	return []field{
		function("call", m.redisCall),
		function("pcall", m.redisPcall),
	}
}

// logAPI returns redis.log and its levels.
func (m *machine) logAPI() []field {
	return []field{
		function("log", m.redisLog),
		{"LOG_DEBUG", lua.Int(0)},
		{"LOG_VERBOSE", lua.Int(1)},
		{"LOG_NOTICE", lua.Int(2)},
		{"LOG_WARNING", lua.Int(3)},
	}
}

func versionAPI(o Options) []field {
	fields := []field{
		{"REDIS_VERSION_NUM", lua.Int(versionNumber(o.Version))},
		{"REDIS_VERSION", lua.String(o.Version)},
	}
	if o.Own == "" {
		return fields
	}
	return append(fields, field{"EBB_VERSION_NUM", lua.Int(versionNumber(o.Own))}, field{"EBB_VERSION", lua.String(o.Own)},
		field{"SERVER_NAME", lua.String(serverName)})
}

// serverName is SERVER_NAME, and server_name of INFO; Valkey says "valkey".
const serverName = "ebb"

// versionNumber is major<<16 | minor<<8 | patch of a version such as "0.6.1" or "1.2.3-rc1".
func versionNumber(version string) (n int) {
	parts := strings.SplitN(version, ".", 3)
	for i := range 3 {
		digits := 0
		if i < len(parts) {
			for _, c := range []byte(parts[i]) {
				if c < '0' || c > '9' {
					break
				}
				digits = digits*10 + int(c-'0')
			}
		}
		n = n<<8 | digits&0xff
	}
	return n
}

// The bits of redis.set_repl.
const (
	replAOF      = 1
	replReplicas = 2
)

// replyAPI returns the other functions that scripts and functions have.
func (m *machine) replyAPI() []field {
	return []field{
		function("setresp", m.redisSetresp),
		function("sha1hex", m.redisSHA1),
		function("error_reply", m.redisErrorReply),
		function("status_reply", m.redisStatusReply),
		function("set_repl", m.redisSetRepl),
		{"REPL_NONE", lua.Int(0)},
		{"REPL_AOF", lua.Int(replAOF)},
		{"REPL_SLAVE", lua.Int(replReplicas)},
		{"REPL_REPLICA", lua.Int(replReplicas)},
		{"REPL_ALL", lua.Int(replAOF | replReplicas)},
		function("acl_check_cmd", m.redisACLCheck),
	}
}

// debugAPI returns the functions that only scripts of EVAL have. Without a debugger
// breakpoint and debug do nothing.
func (m *machine) debugAPI() []field {
	return []field{
		function("debug", func(c lua.Call) error {
			if m.debug != nil {
				m.debug.redisDebug(c)
			}
			return c.Return()
		}),
		function("breakpoint", func(c lua.Call) error {
			if m.debug == nil {
				return c.Return()
			}
			m.debug.called = true
			return c.Return(lua.True)
		}),
		function("replicate_commands", func(c lua.Call) error { return c.Return(lua.True) }),
	}
}

// raise returns the error of a function of redis: an error table, whose message
// has no position.
func (m *machine) raise(text string) error {
	if m.debug != nil {
		m.debug.raised(text)
	}
	t, err := m.single("err", text)
	if err != nil {
		return err
	}
	return &lua.Error{Value: t}
}

// single returns a table with one field, such as {ok = "OK"}.
func (m *machine) single(name, text string) (lua.Value, error) {
	t := m.state.NewTable(0, 1)
	return lua.TableValue(t), t.SetString(name, lua.String(text))
}

func (m *machine) redisLog(c lua.Call) error {
	if c.N() < 2 {
		return m.raise("ERR redis.log() requires two arguments or more.")
	}
	level, err := c.CheckNumber(1)
	if err != nil {
		return m.raise("ERR First argument must be a number (log level).")
	}
	if level < 0 || level >= 4 {
		return m.raise("ERR Invalid log level.")
	}
	var text strings.Builder
	for i := 2; i <= c.N(); i++ {
		if v := c.Arg(i); !v.IsString() && !v.IsNumber() {
			continue
		}
		if i > 2 {
			text.WriteByte(' ')
		}
		text.WriteString(m.text(c.Arg(i)))
	}
	if err := m.state.Charge(text.Len()); err != nil {
		return err
	}
	m.host.Log(int(level), text.String())
	return c.Return()
}

// number returns argument i as lua_tonumber does: 0 if it is not a number.
func number(c lua.Call, i int) float64 {
	f, err := c.CheckNumber(i)
	if err != nil {
		return 0
	}
	return f
}

func (m *machine) redisSetresp(c lua.Call) error {
	if c.N() != 1 {
		return m.raise("ERR redis.setresp() requires one argument.")
	}
	proto := math.Trunc(number(c, 1))
	if proto != 2 && proto != 3 {
		return m.raise("ERR RESP version must be 2 or 3.")
	}
	m.proto = int(proto)
	m.host.SetProto(m.proto)
	return c.Return()
}

func (m *machine) redisSetRepl(c lua.Call) error {
	if c.N() != 1 {
		return m.raise("ERR redis.set_repl() requires one argument.")
	}
	flags := math.Trunc(number(c, 1))
	if flags < 0 || flags > replAOF|replReplicas {
		return m.raise("ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	bits := int(flags)
	m.host.SetReplication(bits&replAOF != 0, bits&replReplicas != 0)
	return c.Return()
}

func (m *machine) redisSHA1(c lua.Call) error {
	if c.N() != 1 {
		return m.raise("ERR wrong number of arguments")
	}
	text := "" // of what is not a string
	if v := c.Arg(1); v.IsString() || v.IsNumber() {
		text = m.text(v)
	}
	sum := sha1.New()
	for part := bytesOf(text); len(part) > 0; {
		n := min(len(part), sha1Part)
		if err := m.state.Spend(n / 4); err != nil {
			return err
		}
		sum.Write(part[:n])
		part = part[n:]
	}
	return c.Return(lua.String(hex.EncodeToString(sum.Sum(nil))))
}

// sha1Part is the number of bytes that sha1hex processes in about 50 us.
const sha1Part = 64 << 10

// hexSHA1 returns the SHA1 digest that identifies a script, in hex.
func hexSHA1(text string) string {
	sum := sha1.Sum(bytesOf(text))
	return hex.EncodeToString(sum[:])
}

func (m *machine) redisErrorReply(c lua.Call) error {
	text, ok := c.Arg(1).AsString()
	if !ok || c.N() != 1 {
		return m.wrongReply(c)
	}
	if m.debug != nil {
		m.debug.raised("-" + strings.TrimPrefix(text, "-"))
	}
	if err := m.state.Charge(len(text)); err != nil {
		return err
	}
	t, err := m.single("err", withCode(cString(text)))
	if err != nil {
		return err
	}
	return c.Return(t)
}

func (m *machine) redisStatusReply(c lua.Call) error {
	if !c.Arg(1).IsString() || c.N() != 1 {
		return m.wrongReply(c)
	}
	t := m.state.NewTable(0, 1)
	if err := t.SetString("ok", c.Arg(1)); err != nil {
		return err
	}
	return c.Return(lua.TableValue(t))
}

// wrongReply returns the error table that error_reply and status_reply return for wrong
// arguments; they do not raise it.
func (m *machine) wrongReply(c lua.Call) error {
	if m.debug != nil {
		m.debug.raised("ERR wrong number or type of arguments")
	}
	t, err := m.single("err", "ERR wrong number or type of arguments")
	if err != nil {
		return err
	}
	return c.Return(t)
}

// withCode converts an error's text to the form of an error reply: no "-" at its
// beginning, a code, which is ERR for a text of one word, and no line ends around what
// follows it.
func withCode(text string) string {
	text = strings.TrimPrefix(text, "-")
	code, rest, found := strings.Cut(text, " ")
	if !found {
		code, rest = "ERR", text
	}
	return code + " " + strings.Trim(rest, "\r\n")
}

func (m *machine) redisACLCheck(c lua.Call) error {
	args, err := m.arguments(c)
	if err != nil {
		return err
	}
	allowed, err := m.host.Allowed(args)
	if err != nil {
		return m.raise("ERR Invalid command passed to redis.acl_check_cmd()")
	}
	return c.Return(lua.Bool(allowed))
}

// redisCall runs a command, and raises the error that it replies.
func (m *machine) redisCall(c lua.Call) error {
	args, err := m.arguments(c)
	if err != nil {
		return err
	}
	return m.reply(c, m.command(args), true)
}

// redisPcall runs a command, and returns the error that it replies, and those
// about its arguments, as error tables.
func (m *machine) redisPcall(c lua.Call) error {
	args, err := m.arguments(c)
	if err != nil {
		if e, ok := err.(*lua.Error); ok {
			return c.Return(e.Value)
		}
		return err
	}
	return m.reply(c, m.command(args), false)
}

// command runs a command. If there is a debugger, it shows the command and its reply.
func (m *machine) command(args [][]byte) []byte {
	if m.debug == nil {
		return m.host.Call(args)
	}
	m.debug.calls(args)
	reply := m.host.Call(args)
	m.debug.replied(reply)
	return reply
}

// arguments returns a command's arguments: views of the strings that the call
// has, and numbers in text. They are valid until the next call.
func (m *machine) arguments(c lua.Call) ([][]byte, error) {
	n := c.N()
	if n == 0 {
		return nil, m.raise("ERR Please specify at least one argument for this redis lib call")
	}
	args, digits := m.args[:0], m.digits[:0]
	for i := 1; i <= n; i++ {
		v := c.Arg(i)
		if s, ok := v.AsString(); ok {
			args = append(args, bytesOf(s))
			continue
		}
		f, ok := v.AsNumber()
		if !ok {
			return nil, m.raise("ERR Lua redis lib command arguments must be strings or integers")
		}
		at := len(digits)
		digits = appendNumber(digits, f) // should it move, the views before stay valid
		args = append(args, digits[at:len(digits):len(digits)])
	}
	m.args, m.digits = args, digits
	m.keepArgs = max(m.keepArgs, n)
	return args, nil
}

// appendNumber appends a number as C's printf does by "%.17g".
func appendNumber(b []byte, f float64) []byte {
	if i := int64(f); f > -1e17 && f < 1e17 && float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, i, 10)
	}
	if b, ok := appendSpecial(b, f); ok {
		return b
	}
	return strconv.AppendFloat(b, f, 'g', 17, 64)
}

// appendSpecial appends an infinity or a NaN as C's printf does. It reports false for a
// finite number.
func appendSpecial(b []byte, f float64) ([]byte, bool) {
	switch {
	case math.IsInf(f, 1):
		return append(b, "inf"...), true
	case math.IsInf(f, -1):
		return append(b, "-inf"...), true
	case f != f && math.Signbit(f):
		return append(b, "-nan"...), true
	case f != f:
		return append(b, "nan"...), true
	}
	return b, false
}
