package instance

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

// The data of links: messages and ebb's own types, over TLS and over transports without event loops.

// subscribed returns a connection that subscribes to a channel and to a shard channel.
func subscribed(t *testing.T, addr string) client {
	t.Helper()
	c := connect(t, addr)
	c.must("SUBSCRIBE", "news")
	c.must("SSUBSCRIBE", "shard")
	return c
}

// hears reads the next message, and fails if it is a different one.
func hears(t *testing.T, c client, kind, message string) {
	t.Helper()
	if v := c.read(); len(v.Elems) != 3 || v.Elems[0].Str != kind || v.Elems[2].Str != message {
		t.Errorf("a subscriber hears %v, want %s %q", v, kind, message)
	}
}

// publishes sends messages in every way, and checks the replies, which count the subscribers of the server itself.
func publishes(t *testing.T, c client) {
	t.Helper()
	c.must("PUBLISH", "news", "plain")
	c.must("SPUBLISH", "shard", "to a shard")
	c.must("MULTI")
	c.must("PUBLISH", "news", "in a transaction")
	c.must("SET", "told", "yes")
	c.must("EXEC")
	c.must("EVAL", "redis.call('SET', 'told', 'twice') return redis.call('PUBLISH', 'news', 'by a script')", "1", "told")
}

func hearsAll(t *testing.T, c client) {
	t.Helper()
	hears(t, c, "message", "plain")
	hears(t, c, "smessage", "to a shard")
	hears(t, c, "message", "in a transaction")
	hears(t, c, "message", "by a script")
}

func TestMessagesReachTheSubscribersOfReplicas(t *testing.T) {
	start := map[string]func(t *testing.T) string{
		"ebb":   func(t *testing.T) string { return startNode(t) },
		"redis": func(t *testing.T) string { return startRedis(t) },
	}
	for _, chain := range [][3]string{{"ebb", "ebb", "ebb"}, {"redis", "ebb", "ebb"}, {"ebb", "redis", "ebb"}, {"ebb", "ebb", "redis"}} {
		t.Run(strings.Join(chain[:], " to "), func(t *testing.T) {
			var addrs [3]string
			var all [3]client
			for i, what := range chain {
				addrs[i] = start[what](t)
				if all[i] = connect(t, addrs[i]); i > 0 {
					follow(t, all[i], addrs[i-1])
				}
			}
			var listen [3]client
			for i := range listen {
				listen[i] = subscribed(t, addrs[i])
			}
			publishes(t, all[0])
			for _, c := range listen {
				hearsAll(t, c)
			}
			caughtUp(t, all[0], all[1])
			caughtUp(t, all[1], all[2])

			// A replica's own messages are delivered on the replica only, and are in no stream.
			at := all[1].field("master_repl_offset")
			if got := all[1].must("PUBLISH", "news", "own").Int; got != 1 {
				t.Errorf("%d heard a message of the replica, want 1", got)
			}
			hears(t, listen[1], "message", "own")
			all[0].must("PUBLISH", "news", "last")
			for _, c := range listen {
				hears(t, c, "message", "last")
			}
			if chain[1] == "ebb" && at == "" {
				t.Error("INFO has no offset")
			}
		})
	}
}

// A message of a transaction follows the effects of the transaction.
func TestAMessageComesBehindItsTransaction(t *testing.T) {
	in := startMaster(t, append(noPings, "--repl-diskless-sync", "no")...)
	c := connect(t, in.Addrs()[0].String())
	if c.must("PUBLISH", "news", "no replica follows"); field(c, "replication", "master_repl_offset") != "0" {
		t.Error("without a backlog a message is in the stream")
	}
	r := raw(t, in, "REPLCONF capa ebb")
	_, _ = afterFullSync(t, r)
	c.must("MULTI")
	c.must("PUBLISH", "news", "m")
	c.must("SET", "k", "v")
	c.must("EXEC")
	expectBytes(t, r.r, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*3\r\n$7\r\n"+
		"PUBLISH\r\n$4\r\nnews\r\n$1\r\nm\r\n")
}

// Messages are for replicas: no file contains them.
func TestFilesHoldNoMessages(t *testing.T) {
	dir := t.TempDir()
	in := startMaster(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always")
	c := connect(t, in.Addrs()[0].String())
	r := connect(t, startNode(t))
	follow(t, r, in.Addrs()[0].String())
	publishes(t, c)
	caughtUp(t, c, r)
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.aof"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	if got := all.String(); !strings.Contains(got, "told") || strings.Contains(got, "PUBLISH") || strings.Contains(got, "GETACK") {
		t.Errorf("the files hold %q", got)
	}
}

// ownTypes writes values of the types that only ebb has.
func ownTypes(c client) {
	c.t.Helper()
	for _, args := range [][]string{
		{"BF.ADD", "bloom", "x"}, {"RL.TAKE", "limit", "10", "100000"}, {"LOCK.ACQUIRE", "lock", "w1", "1000000"},
		{"SEM.ACQUIRE", "sem", "w1", "3", "1000000"}, {"DQ.ADD", "queue", "job", "payload"}, {"DQ.POP", "queue", "LEASE", "1000000"},
		{"HSET", "h", "f", "v", "g", "w"}, {"HPEXPIRE", "h", "1000000", "FIELDS", "1", "f"}, {"SADD", "s", "a", "b"},
		{"SPEXPIRE", "s", "1000000", "MEMBERS", "1", "a"}, {"ZADDEX", "z", "EX", "1000", "MEMBERS", "1", "1", "a"}, {"RPUSH", "l", "a", "b", "c"},
		{"LPEXPIRE", "l", "1000000", "INDEXES", "1", "1"}, {"SET", "slide", "v", "PX", "1000000"},
		{"EXPIRY", "RULE", "SET", "sessions", "MATCH", "session:*", "LEVEL", "KEY", "TO", "ended"},
		{"DQ.CONFIG", "{news}", "DELIVER", "{news}:s"}, {"DQ.ADD", "{news}", "a", "payload"},
		{"DQ.ADD", "{news}", "b", "payload", "DELAY", "1000000"},
		{"EXPIRY", "RULE", "SET", "jobs", "MATCH", "gone*", "LEVEL", "KEY", "TO", "QUEUE", "jobs", "DELAY", "1000000", "WITHVALUE"},
		{"SET", "gone", "v", "PX", "1"}, {"DQ.POP", "jobs"}, {"GET", "gone"},
		{"FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"},
	} {
		c.ask(args...)
	}
}

// sameDumps compares the DUMP of every key of two servers.
func sameDumps(t *testing.T, a, b client) {
	t.Helper()
	keys := a.must("KEYS", "*")
	if len(keys.Elems) < 10 {
		t.Errorf("there are %d keys", len(keys.Elems))
	}
	for _, k := range keys.Elems {
		if x, y := a.must("DUMP", k.Str), b.must("DUMP", k.Str); x.Str != y.Str || x.IsNull() {
			t.Errorf("%s differs: %q, %q", k.Str, x.Str, y.Str)
		}
		if x, y := a.must("PEXPIRETIME", k.Str).Int, b.must("PEXPIRETIME", k.Str).Int; x != y {
			t.Errorf("the deadline of %s is %d and %d", k.Str, x, y)
		}
	}
	for _, args := range [][]string{{"FUNCTION", "DUMP"}, {"DBSIZE"}} {
		if x, y := a.must(args...), b.must(args...); x.Str != y.Str || x.Int != y.Int {
			t.Errorf("%v says %v and %v", args, x, y)
		}
	}
}

// In a chain of three ebb servers, values of ebb's own types arrive in the snapshot and in the stream, and stay in
// use.
func TestOurTypesPassThroughAChain(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			addrs := [3]string{startNode(t, options...), startNode(t, options...), startNode(t)}
			var all [3]client
			for i, a := range addrs {
				all[i] = connect(t, a)
			}
			ownTypes(all[0])
			follow(t, all[1], addrs[0])
			all[0].must("RENAME", "lock", "lock1")
			all[0].must("RENAME", "bloom", "bloom1")
			ownTypes(all[0])
			follow(t, all[2], addrs[1])
			all[0].must("COPY", "sem", "sem1")
			all[0].must("COPY", "queue", "queue1")
			caughtUp(t, all[0], all[1])
			caughtUp(t, all[1], all[2])
			sameDumps(t, all[0], all[1])
			sameDumps(t, all[0], all[2])
			if a, b := all[0].ask("EXPIRY", "RULE", "LIST"), rulesOf(all[2]); a.Kind == resp.KindError || len(a.Elems) != b {
				t.Errorf("the master has the rules %v, the last replica %d", a, b)
			}

			// The promoted replica issues greater tokens, and knows the holders of locks.
			token := all[0].must("LOCK.ACQUIRE", "late", "w1", "1000000").Int
			caughtUp(t, all[0], all[1])
			all[1].must("REPLICAOF", "NO", "ONE")
			if v := all[1].ask("LOCK.ACQUIRE", "late", "w2", "1000000"); v.Kind != resp.KindError && !v.IsNull() && v.Int > 0 {
				t.Errorf("the lock was taken from its holder: %v", v)
			}
			if v := all[1].must("LOCK.ACQUIRE", "other", "w2", "1000000").Int; v <= token {
				t.Errorf("the new master's token %d is not above %d", v, token)
			}
		})
	}
}

// rulesOf returns the number of expiry rules, once the server answers.
func rulesOf(c client) int {
	c.must("REPLICAOF", "NO", "ONE")
	return len(c.must("EXPIRY", "RULE", "LIST").Elems)
}

// certFiles writes a certificate and its key to files.
func certFiles(t *testing.T, name string) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	c, k := certtest.Make(t, name)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, b := range map[string][]byte{cert: c, key: k} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestReplicationOverTLS(t *testing.T) {
	cert, key := certFiles(t, "master.test")
	other, _ := certFiles(t, "other.test")
	files := []string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert}
	for name, auth := range map[string]string{"the master is known": "no", "and the replica shows who it is": "yes"} {
		t.Run(name, func(t *testing.T) {
			port := unusedPort(t)
			in := startMaster(t, append(files, "--port", "0", "--unixsocket", realserver.Socket(t), "--tls-port", strconv.Itoa(port),
				"--tls-auth-clients", auth)...)
			c := dial(t, in.svc.Config.String("unixsocket"))
			ownTypes(c)
			everyType(c, 0)
			r := connect(t, startNode(t, append(files, "--tls-replication", "yes")...))
			follow(t, r, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			everyType(c, 1)
			caughtUp(t, c, r)
			c.must("CLIENT", "KILL", "TYPE", "replica")
			everyType(c, 2)
			caughtUp(t, c, r)
			if got := field(c, "stats", "sync_full") + field(c, "stats", "sync_partial_ok"); got != "11" {
				t.Errorf("full and partial synchronisations: %s, want 1 and 1", got)
			}
			list := c.must("CLIENT", "LIST", "TYPE", "replica").Str
			if !strings.Contains(list, ":"+strconv.Itoa(port)+" ") {
				t.Errorf("the replica is not on the TLS port: %s", list)
			}

			// A replica does not accept a master whose certificate has another authority.
			said := &logged{}
			stranger, err := config.Load([]string{"--port", "0", "--unixsocket", realserver.Socket(t), "--tls-replication", "yes",
				"--tls-ca-cert-file", other, "--replicaof", "127.0.0.1 " + strconv.Itoa(port)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			second, err := Start(context.Background(), Options{Config: stranger, Log: slog.New(slog.NewTextHandler(said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			tier.Eventually(t, "the certificate is refused", func() bool { return said.has("unknown authority") })
			if err := second.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if n := c.field("connected_slaves"); n != "1" {
				t.Errorf("there are %s replicas", n)
			}
		})
	}
}

// logged collects the log of a server.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// withoutLoops serves an instance on one more port, with the portable transport.
func withoutLoops(t *testing.T, in *Instance) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.srv.Serve(ctx, struct{ net.Listener }{ln}) }() // hides *net.TCPListener, which the loops would take over
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func TestRedisReplicatesEbbOverThePortableTransport(t *testing.T) {
	in := startMaster(t)
	at := withoutLoops(t, in)
	c := connect(t, at)
	everyType(c, 0)
	_, r := redisReplica(t, at)
	follows(t, c, 1)
	everyType(c, 1)
	follows(t, c, 1)
	c.must("CLIENT", "KILL", "TYPE", "replica")
	everyType(c, 2)
	follows(t, c, 1)
	samePlainData(t, c, r, 3)
	if got := field(c, "stats", "sync_full") + field(c, "stats", "sync_partial_ok"); got != "11" {
		t.Errorf("full and partial synchronisations: %s, want 1 and 1", got)
	}
}

// A replica closes the connection to a master that is silent for repl-timeout, even during a snapshot.
func TestASilentMasterIsGivenUp(t *testing.T) {
	t.Parallel() // the test mostly waits
	file := snapshot(t, "new")
	half := full(100, file, "")
	for name, says := range map[string]string{"in the stream": half, "in a snapshot": half[:len(half)-9],
		"before it": "+FULLRESYNC " + streamID + " 100\r\n"} {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t, says)
			for range 60 { // the replica gives each of them up as well
				s.say(full(100, file, ""))
			}
			c := replicaOfScripted(t, s, "--repl-timeout", "1")
			if name == "in the stream" {
				linked(t, c)
			}
			seen := c.field("total_net_repl_input_bytes")
			tier.Eventually(t, "the link is made again", func() bool {
				got := c.field("total_net_repl_input_bytes")
				a, _ := strconv.Atoi(got)
				b, _ := strconv.Atoi(seen)
				return a > b && c.field("master_link_status") == "up" && c.ask("GET", "new").Str == "v"
			})
		})
	}
}
