package instance

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// peer is a server that keys are moved to and from.
type peer struct {
	client
	host, port string
}

// startPeer serves an empty engine on a TCP port.
func startPeer(t *testing.T) peer {
	t.Helper()
	addr := startOnPort(t).Addrs()[0].String()
	host, port, _ := net.SplitHostPort(addr)
	return peer{dialTCP(t, addr), host, port}
}

// realPeer is a redis-server.
func realPeer(t *testing.T) peer {
	t.Helper()
	addr := realserver.Start(t, "redis-server")
	host, port, _ := net.SplitHostPort(addr)
	return peer{dialTCP(t, addr), host, port}
}

// want sends a command and checks the reply, in redis-cli's form.
func (p peer) want(reply string, args ...string) {
	p.t.Helper()
	if got := strings.TrimSpace(string(wire.AppendTTY(nil, p.ask(args...)))); got != reply {
		p.t.Errorf("%q: %s, want %s", args, got, reply)
	}
}

// contents has a key of each type with the command that reads it.
var contents = []struct {
	make, read []string
	reply      string
}{
	{[]string{"SET", "string", "v"}, []string{"GET", "string"}, `"v"`},
	{[]string{"RPUSH", "list", "a", "1"}, []string{"LRANGE", "list", "0", "-1"}, "1) \"a\"\n2) \"1\""},
	{[]string{"SADD", "set", "a"}, []string{"SMEMBERS", "set"}, `1) "a"`},
	{[]string{"SADD", "ints", "1", "2"}, []string{"SMEMBERS", "ints"}, "1) \"1\"\n2) \"2\""},
	{[]string{"ZADD", "zset", "1.5", "a"}, []string{"ZRANGE", "zset", "0", "-1", "WITHSCORES"}, "1) \"a\"\n2) \"1.5\""},
	{[]string{"HSET", "hash", "f", "v"}, []string{"HGETALL", "hash"}, "1) \"f\"\n2) \"v\""},
	{[]string{"XADD", "stream", "1-1", "f", "v"}, []string{"XLEN", "stream"}, "(integer) 1"},
}

func TestKeysOfEveryTypeMigrateBetweenEbbAndRedis(t *testing.T) {
	route := []peer{startPeer(t), realPeer(t), startPeer(t), startPeer(t)}
	keys := []string{}
	for _, c := range contents {
		route[0].ask(c.make...)
		keys = append(keys, c.make[1])
	}
	route[0].want("(integer) 1", "PEXPIRE", "string", "1000000")
	for i := 1; i < len(route); i++ {
		from, to := route[i-1], route[i]
		from.want("OK", append([]string{"MIGRATE", to.host, to.port, "", "0", "60000", "KEYS", "missing"}, keys...)...)
		from.want("(integer) 0", "DBSIZE")
		for _, c := range contents {
			to.want(c.reply, c.read...)
		}
		if ttl := to.ask("PTTL", "string").Int; ttl < 900000 || ttl > 1000000 {
			t.Errorf("hop %d: the deadline is in %d ms", i, ttl)
		}
		to.want("(integer) -1", "TTL", "hash")
	}
}

func TestMigrateCopiesAndReplacesWhenAskedTo(t *testing.T) {
	from, to := startPeer(t), realPeer(t)
	from.ask("MSET", "a", "1", "b", "2", "c", "3")
	to.ask("SET", "b", "old")
	from.want("OK", "MIGRATE", to.host, to.port, "a", "3", "60000", "COPY")
	from.want("(integer) 1", "EXISTS", "a")
	from.want("(error) ERR Target instance replied with error: BUSYKEY Target key name already exists.",
		"MIGRATE", to.host, to.port, "", "0", "60000", "KEYS", "a", "b", "c")
	from.want("(integer) 1", "EXISTS", "a", "b", "c") // the keys with an acknowledged RESTORE are gone
	to.want("1) \"1\"\n2) \"old\"\n3) \"3\"", "MGET", "a", "b", "c")
	from.want("OK", "MIGRATE", to.host, to.port, "b", "0", "60000", "REPLACE")
	to.want(`"2"`, "GET", "b")
	to.want("OK", "SELECT", "3")
	to.want(`"1"`, "GET", "a")
}

func TestMigrateAuthenticates(t *testing.T) {
	for _, to := range []peer{realPeer(t), startPeer(t)} {
		to.want("OK", "CONFIG", "SET", "requirepass", "secret")
		from := startPeer(t)
		from.ask("SET", "k", "v")
		migrate := func(reply string, auth ...string) {
			t.Helper()
			from.want(reply, append([]string{"MIGRATE", to.host, to.port, "k", "0", "60000", "REPLACE"}, auth...)...)
		}
		migrate("(error) ERR Target instance replied with error: NOAUTH Authentication required.")
		migrate("(error) ERR Target instance replied with error: WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "wrong")
		from.want(`"v"`, "GET", "k")
		migrate("OK", "AUTH", "secret")
		from.ask("SET", "k", "v")
		migrate("OK", "AUTH2", "default", "secret")
		from.want("(nil)", "GET", "k")
	}
}

func TestAKeyStaysWhenTheTargetDoesNotAnswer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // the kernel accepts connections, but no process reads
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	from := startPeer(t)
	from.ask("SET", "k", "v")
	// On a stalled machine the timeout may pass before the connection is made.
	if v := from.ask("MIGRATE", host, port, "k", "0", "100"); v.Str != "IOERR error or timeout reading to target instance" &&
		v.Str != "IOERR error or timeout connecting to the client" {
		t.Errorf("MIGRATE: %v", v)
	}
	from.want(`"v"`, "GET", "k")
	from.want("(error) IOERR error or timeout connecting to the client", "MIGRATE", "no host", port, "k", "0", "20")
}

func TestOthersAreServedDuringAMigration(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	host, port, _ := net.SplitHostPort(ln.Addr().String())
	from := startPeer(t)
	from.ask("SET", "k", "v")
	if _, err := from.Write(wire.AppendCommand(nil, "MIGRATE", host, port, "k", "0", "60000")); err != nil {
		t.Fatal(err)
	}
	target, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(target)
	for range 2 { // SELECT and RESTORE: the migration holds the key from now on
		if _, err := wire.ReadValue(r); err != nil {
			t.Fatal(err)
		}
	}
	other, err := net.Dial("tcp", net.JoinHostPort(from.host, from.port))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	o := peer{client: client{t, other, bufio.NewReader(other)}}
	for i := range 100 { // a key of the same shard may make its client wait, but not the loop
		if _, err := other.Write(wire.AppendCommand(nil, "PING", strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if v, err := wire.ReadValue(o.r); err != nil || v.Str != strconv.Itoa(i) {
			t.Fatalf("%v %v", v, err)
		}
	}
	if _, err := other.Write(wire.AppendCommand(nil, "GET", "k")); err != nil { // waits for the migration
		t.Fatal(err)
	}
	if _, err := target.Write([]byte("+OK\r\n+OK\r\n")); err != nil {
		t.Fatal(err)
	}
	if v, err := wire.ReadValue(o.r); err != nil || !v.IsNull() {
		t.Errorf("the key that has moved reads %v, %v", v, err)
	}
	if v, err := wire.ReadValue(from.r); err != nil || v.Str != "OK" {
		t.Errorf("MIGRATE: %v, %v", v, err)
	}
	_ = target.Close()
}
