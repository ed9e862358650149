package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// serve answers each connection by a script: what it returns for a request is
// written, and "" closes the connection. It ends with the test.
func serve(t *testing.T, l net.Listener, reply func(conn int, args []string) string) string {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serveConn(c, n, reply)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func serveConn(c net.Conn, n int, reply func(conn int, args []string) string) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		v, err := wire.ReadValue(r)
		if err != nil {
			return
		}
		args, _ := v.AsStrings()
		text := reply(n, args)
		if text == "" {
			return
		}
		c.Write([]byte(text))
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNothingListeningSaysHowToStartAServer(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	got := ours(t, addr, "", "ping")
	_, port, _ := net.SplitHostPort(addr)
	want := "Could not connect to Redis at " + addr + ": Connection refused\nNo server listens there. To start a server: " +
		"ebb serve --port " + port + "\n"
	if got != (outcome{err: want, status: 1}) {
		t.Fatalf("%v", got)
	}
	again := ours(t, addr, "ping\nping\n")
	if n := strings.Count(again.err, "Could not connect"); n != 3 || strings.Count(again.err, "No server listens") != 1 || again.status != 0 {
		t.Fatalf("%v", again)
	}
}

func TestALostConnectionIsReplacedWithPasswordDatabaseAndProtocol(t *testing.T) {
	var said []string
	addr := serve(t, listen(t), func(conn int, args []string) string {
		said = append(said, strings.Join(args, " "))
		if args[0] == "DIE" {
			return ""
		}
		return "+OK\r\n"
	})
	got := ours(t, addr, "select 5\nDIE\nping\n", "-a", "secret", "-n", "2", "-3", "--no-auth-warning")
	want := []string{"AUTH secret", "SELECT 2", "HELLO 3", "select 5", "DIE", "AUTH secret", "SELECT 5", "HELLO 3", "ping"}
	if !slices.Equal(said, want) {
		t.Fatalf("said %q", said)
	}
	if got != (outcome{out: "OK\nOK\n", err: "Error: Server closed the connection\n"}) {
		t.Fatalf("%v", got)
	}
}

func TestShutdownIsNoLostConnection(t *testing.T) {
	addr := serve(t, listen(t), func(int, []string) string { return "" })
	if got := ours(t, addr, "", "shutdown"); got != (outcome{}) {
		t.Fatalf("%v", got)
	}
	if got := ours(t, addr, "", "get", "k"); got != (outcome{err: "Error: Server closed the connection\n", status: 1}) {
		t.Fatalf("%v", got)
	}
}

func TestSubscribePrintsMessagesUntilTheConnectionEnds(t *testing.T) {
	addr := serve(t, listen(t), func(_ int, args []string) string {
		return "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\nbroken"
	})
	const head = "Reading messages... (press Ctrl-C to quit)\n"
	for format, want := range map[string]string{
		"--no-raw": head + "1) \"subscribe\"\n2) \"a\"\n3) (integer) 1\n1) \"message\"\n2) \"a\"\n3) \"hi\"\n",
		"--csv":    head + "\"subscribe\",\"a\",1\n\"message\",\"a\",\"hi\"\n",
		"--raw":    "subscribe\na\n1\nmessage\na\nhi\n",
	} {
		// The stream never ends by itself; the context stands for Ctrl-C.
		ctx, cancel := context.WithCancel(context.Background())
		var out writerFunc
		var printed strings.Builder
		out = func(p []byte) (int, error) {
			printed.Write(p)
			if strings.Contains(printed.String(), "hi") {
				cancel()
			}
			return len(p), nil
		}
		host, port, _ := net.SplitHostPort(addr)
		Main(ctx, []string{"-h", host, "-p", port, format, "subscribe", "a"}, Env{In: strings.NewReader(""), Out: out, Err: &bytes.Buffer{}})
		cancel()
		if printed.String() != want {
			t.Errorf("%s: %q", format, printed.String())
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestPushesAreShownOnlyIfWanted(t *testing.T) {
	addr := serve(t, listen(t), func(int, []string) string {
		return ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n"
	})
	if got := ours(t, addr, "", "get", "k"); got.out != "OK\n" {
		t.Fatalf("%v", got)
	}
	if got := ours(t, addr, "", "--no-raw", "--show-pushes", "yes", "get", "k"); got.out != "-> invalidate: 'k'\nOK\n" {
		t.Fatalf("%v", got)
	}
}

func TestPipeGivesUpOnASilentServer(t *testing.T) {
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "+PONG\r\n")
		io.Copy(io.Discard, c)
	}()
	got := ours(t, l.Addr().String(), "PING\r\n", "--pipe", "--pipe-timeout", "0.01")
	l.Close()
	<-done
	want := outcome{
		out:    "All data transferred. Waiting for the last reply...\nerrors: 1, replies: 1\n",
		err:    "No replies for 0.01 seconds: exiting.\n",
		status: 1,
	}
	if got != want {
		t.Fatalf("%v", got)
	}
}

func TestTLSChecksTheServersCertificate(t *testing.T) {
	hs := httptest.NewTLSServer(nil)
	certs := hs.TLS.Certificates
	hs.Close()
	addr := serve(t, tls.NewListener(listen(t), &tls.Config{Certificates: certs}), func(int, []string) string { return "+PONG\r\n" })

	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certs[0].Certificate[0]})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		ok    bool
	}{
		{[]string{"--tls", "--cacert", ca}, true},
		{[]string{"--tls", "--cacert", ca, "--sni", "example.com"}, true},
		{[]string{"--tls", "--cacertdir", filepath.Dir(ca)}, true},
		{[]string{"--tls", "--insecure"}, true},
		{[]string{"--tls", "--cacert", ca, "--sni", "other.test"}, false},
		{[]string{"--tls"}, false},
		{[]string{"--tls", "--cacert", "/nonexistent"}, false},
	} {
		got := ours(t, addr, "", append(c.flags, "ping")...)
		if ok := got == (outcome{out: "PONG\n"}); ok != c.ok || !ok && got.status != 1 {
			t.Errorf("%v: %v", c.flags, got)
		}
	}
}

func TestPasswordsStayOutOfTheHistory(t *testing.T) {
	for _, line := range []string{
		"auth pw", "AUTH user pw", "hello 3 auth u p", "config set requirepass x", "CONFIG SET maxmemory 1 requirepass x",
		"acl setuser u >pw", "migrate h 1 k 0 1 auth pw", "config set masterauth x",
	} {
		if !secret(line) {
			t.Errorf("%q would be kept", line)
		}
	}
	for _, line := range []string{"get auth", "set k requirepass", "hello 3", "config get requirepass", "acl list"} {
		if secret(line) {
			t.Errorf("%q would be lost", line)
		}
	}
}

func TestHistoryFileFollowsTheEnvironment(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	if got := historyFile(env("EBBCLI_HISTFILE", "/a", "REDISCLI_HISTFILE", "/b")); got != "/a" {
		t.Error(got)
	}
	if got := historyFile(env("REDISCLI_HISTFILE", "/dev/null")); got != "" {
		t.Error(got)
	}
	if got := historyFile(env()); filepath.Base(got) != ".ebbcli_history" {
		t.Error(got)
	}
}

func TestHintsShowWhatMayStillFollow(t *testing.T) {
	all := commandsOf(t)
	e := &editor{commands: func() []command { return all }}
	for line, want := range map[string]string{
		"get":                    " key",
		"get ":                   "key",
		"GET k":                  "",
		"set k":                  " value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
		"set k v ex":             " seconds [NX|XX] [GET]",
		"set k v px 10 ":         "[NX|XX] [GET]",
		"set k v get nx":         " [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
		"mset a 1":               " [key value ...]",
		"mset a 1 b":             " value",
		"zadd z nx 1":            " member",
		"config":                 "",
		"config set a":           " value",
		"scan 0 count":           " count [MATCH pattern] [TYPE type]",
		"xadd s maxlen ~ 10":     " [LIMIT count] [NOMKSTREAM] *|id field value [field value ...]",
		"set \"k with space\" v": " [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
		"set \"open":             "",
		"nosuch x":               "",
		"":                       "",
	} {
		if got := e.hint(line); got != want {
			t.Errorf("%q:\n got %q\nwant %q", line, got, want)
		}
	}
}

func TestTabCompletesCommandsSubcommandsAndOptions(t *testing.T) {
	all := commandsOf(t)
	e := &editor{commands: func() []command { return all }}
	for line, want := range map[string]string{
		"getr":         "ange ",
		"GETR":         "ANGE ",
		"config res":   "etstat ",
		"CONFIG REW":   "RITE ",
		"set k v ex":   " |at ",
		"set k v nx p": "x |xat ",
		"help @str":    "eam |ing ",
		"help confi":   "g ",
		"nosuch":       "",
		"connec":       "t ",
		"get k ":       "",
	} {
		ends, _ := e.Do([]rune(line), len(line))
		var got []string
		for _, end := range ends {
			got = append(got, string(end))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// commandsOf fetches a real server's table.
func commandsOf(t *testing.T) []command {
	t.Helper()
	host, port, _ := net.SplitHostPort(realserver.Start(t, "redis-server"))
	opt, err := ParseOptions([]string{"-h", host, "-p", port}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	l := startLookup(context.Background(), opt)
	defer l.stop()
	return l.all(true)
}

func TestPaintShowsTheHintDimmedAndTakesItBack(t *testing.T) {
	all := []command{{name: "GET", args: []argument{{name: "key", kind: "key"}}}}
	e := &editor{commands: func() []command { return all }, hints: func() bool { return true },
		width: func() (int, int) { return 20, 5 }, prompt: "> "}
	if _, _, redraw := e.key([]rune("get"), 3, 't'); !redraw {
		t.Fatal("a key does not redraw")
	}
	if got := string(e.paint([]rune("get"), 3)); got != "get\x1b[90m key\x1b[39m\b\b\b\b" {
		t.Errorf("%q", got)
	}
	if got := string(e.paint([]rune("get"), 3)); got != "get" {
		t.Errorf("a part appended is painted as %q", got)
	}
	if got := string(e.paint([]rune("\n"), 1)); got != "\x1b[K\n" {
		t.Errorf("Enter paints %q", got)
	}
	e.width = func() (int, int) { return 8, 5 }
	e.key([]rune("get"), 3, 't')
	if got := string(e.paint([]rune("get"), 3)); got != "get\x1b[90m k\x1b[39m\b\b" {
		t.Errorf("near the edge: %q", got)
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	words := strings.FieldsFunc(usage, func(r rune) bool { return strings.ContainsRune(" ,;:.()\n", r) })
	for name := range flags() {
		if !slices.Contains(words, name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestURLsOfAllSpellingsLeadToTheServer(t *testing.T) {
	l, err := net.Listen("unix", realserver.Socket(t))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	reply := func(_ int, args []string) string {
		said = append(said, strings.Join(args, " "))
		return "+OK\r\n"
	}
	socket, tcp := serve(t, l, reply), serve(t, listen(t), reply)
	for url, want := range map[string]string{
		"unix://" + socket:                                "PING",
		"redis+unix://" + socket + "?db=2":                "SELECT 2, PING",
		"redis-socket://pw@" + socket + "?database=1":     "AUTH pw, SELECT 1, PING",
		"redis+socket://me:pw@" + socket:                  "AUTH me pw, PING",
		"unix://" + socket + "?username=me&password=p%20": "AUTH me p , PING",
		"redis://" + tcp + "/3?pool_size=2":               "SELECT 3, PING",
		"valkey://me:pw@" + tcp + "?protocol=3":           "AUTH me pw, HELLO 3, PING",
		"redis://pw@" + tcp:                               "AUTH pw, PING",
	} {
		said = nil
		got := ours(t, "127.0.0.1:1", "", "--no-auth-warning", "-u", url, "PING")
		if strings.Join(said, ", ") != want || got.status != 0 {
			t.Errorf("%s: said %q, want %q: %v", url, said, want, got)
		}
	}
	got := ours(t, tcp, "", "-u", "http://me:secret@h", "ping")
	if got.status != 1 || !strings.Contains(got.err, `scheme "http", which is none of redis`) || strings.Contains(got.err, "secret") {
		t.Errorf("%v", got)
	}
}

func TestThePasswordComesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct{ redis, valkey, flag, want string }{
		{"r", "", "", "r"}, {"", "v", "", "v"}, {"r", "v", "", "r"}, {"r", "v", "f", "f"}, {"", "", "", ""},
	} {
		env := map[string]string{"REDISCLI_AUTH": c.redis, "VALKEYCLI_AUTH": c.valkey}
		args := []string{"ping"}
		if c.flag != "" {
			args = []string{"-a", c.flag, "ping"}
		}
		o, err := ParseOptions(args, func(name string) string { return env[name] })
		if err != nil || o.Password != c.want || o.HavePassword != (c.want != "") || o.PasswordInArgs != (c.flag != "") {
			t.Errorf("%+v: %+v, %v", c, o, err)
		}
	}
}
