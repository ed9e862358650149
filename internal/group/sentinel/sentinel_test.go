package sentinel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var (
	a = Server{Host: "10.0.0.1", Port: 6379, ID: strings.Repeat("a", 40), SinceHeartbeat: 100 * time.Millisecond}
	b = Server{Host: "10.0.0.2", Port: 6379, ID: strings.Repeat("b", 40), SinceHeartbeat: 200 * time.Millisecond, Linked: true, Offset: 500}
	w = Server{Host: "10.0.0.3", Port: 26379, ID: strings.Repeat("c", 40)}
)

func view() View {
	return View{Name: "ebb", ID: strings.Repeat("f", 40), Epoch: 4, Master: a, Replicas: []Server{b}, Others: []Server{w}, Quorum: 2,
		Usable:    3,
		DownAfter: 2 * time.Second}
}

// asked runs commands of one client, and returns the replies in RESP.
func asked(o *Options, commands ...string) string {
	c := client{opt: o, id: 7, subscribers: new(atomic.Int64)}
	for _, line := range commands {
		c.run(strings.Fields(line))
		if later := c.later; later != nil {
			c.later = nil
			c.answer(later(context.Background()))
		}
	}
	return string(c.w.Buf)
}

func options(v View) *Options {
	return &Options{View: func() View { return v }, Version: "7.2.4", Failover: func(context.Context) error { return nil },
		Access: &users{guest: &user{}}}
}

// users implements Access.
type users struct {
	denied string
	guest  *user
	named  map[string]*user
}

func (a *users) Denied() string { return a.denied }

func (a *users) Guest() User {
	if a.guest == nil {
		return nil
	}
	return a.guest
}

func (a *users) Login(name, password, _ string) User {
	if u := a.named[name]; u != nil && u.password == password {
		return u
	}
	return nil
}

// user implements User. refusal is its error for changes of the group.
type user struct {
	password, refusal string
	off               bool
}

func (u *user) Valid() bool { return !u.off }

// Refusal refuses all commands, or only those that refusal lists before a colon.
func (u *user) Refusal(command string, sub ...string) string {
	if name, why, ok := strings.Cut(u.refusal, ": "); ok {
		if name != strings.Join(append([]string{command}, sub...), " ") {
			return ""
		}
		return why
	}
	return u.refusal
}

func TestAnswersHaveSentinelsForm(t *testing.T) {
	none := view()
	none.Master, none.Replicas = Server{}, nil
	alone := view()
	alone.Usable = 1
	for _, x := range []struct {
		view    View
		command string
		want    string
	}{
		{view(), "SENTINEL get-master-addr-by-name ebb", "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n"},
		{view(), "SENTINEL get-master-addr-by-name other", "*-1\r\n"},
		{none, "SENTINEL get-master-addr-by-name ebb", "*-1\r\n"},
		{view(), "SENTINEL MASTER other", "-ERR No such master with that name\r\n"},
		{none, "SENTINEL MASTERS", "*0\r\n"},
		{view(), "SENTINEL MASTER", "-ERR wrong number of arguments for 'sentinel|master' command\r\n"},
		{view(), "SENTINEL MYID x", "-ERR wrong number of arguments for 'sentinel|myid' command\r\n"},
		{view(), "SENTINEL", "-ERR wrong number of arguments for 'sentinel' command\r\n"},
		{view(), "SENTINEL monitor x", "-ERR unknown subcommand 'monitor'. Try SENTINEL HELP.\r\n"},
		{view(), "SENTINEL MYID", "$40\r\n" + strings.Repeat("f", 40) + "\r\n"},
		{view(), "SENTINEL CKQUORUM ebb", "+OK 3 usable Sentinels. Quorum and failover authorization can be reached\r\n"},
		{alone, "SENTINEL CKQUORUM ebb", "-NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the specified quorum for this " +
			"master. Not enough available Sentinels to reach the majority and authorize a failover\r\n"},
		{view(), "SENTINEL FAILOVER ebb", "+OK\r\n"},
		{view(), "ROLE", "*2\r\n$8\r\nsentinel\r\n*1\r\n$3\r\nebb\r\n"},
		{view(), "PING", "+PONG\r\n"},
		{view(), "ping hi", "$2\r\nhi\r\n"},
		{view(), "PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"},
		{view(), "CLIENT SETNAME me", "+OK\r\n"},
		{view(), "CLIENT SETINFO LIB-NAME x", "+OK\r\n"},
		{view(), "CLIENT GETNAME", "$-1\r\n"},
		{view(), "CLIENT ID", ":7\r\n"},
		{view(), "CLIENT TRACKING ON OPTIN", "+OK\r\n"}, // as redis-sentinel 7.0.15 does
		{view(), "CLIENT ID x", "-ERR wrong number of arguments for 'client|id' command\r\n"},
		{view(), "CLIENT KILL x", "-ERR unknown subcommand 'KILL'. Try CLIENT HELP.\r\n"},
		{view(), "GET k", "-ERR unknown command 'GET', with args beginning with: 'k' \r\n"},
		{view(), "HELLO 4", "-NOPROTO unsupported protocol version\r\n"},
		{view(), "HELLO x", "-ERR Protocol version is not an integer or out of range\r\n"},
		{view(), "HELLO 3 NAME", "-ERR Syntax error in HELLO option 'NAME'\r\n"},
		{view(), "HELLO 3 SETNAME me", "%6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:3\r\n" +
			"$2\r\nid\r\n:7\r\n" +
			"$4\r\nmode\r\n$8\r\nsentinel\r\n$7\r\nmodules\r\n*0\r\n"},
		{view(), "AUTH x", "-ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?\r\n"},
	} {
		if got := asked(options(x.view), x.command); got != x.want {
			t.Errorf("%s: got %q, want %q", x.command, got, x.want)
		}
	}
}

// fields returns the names of a reply of names and values, and the values by name.
func fields(t *testing.T, answer string) (names []string, values map[string]string) {
	t.Helper()
	v, err := wire.ReadValue(bufio.NewReader(strings.NewReader(answer)))
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Elems) == 1 {
		v = v.Elems[0]
	}
	all, err := v.AsStrings()
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for i := 0; i+1 < len(all); i += 2 {
		names = append(names, all[i])
		values[all[i]] = all[i+1]
	}
	return names, values
}

func TestServersAreDescribedAsSentinelDoes(t *testing.T) {
	const first = "name ip port runid flags link-pending-commands link-refcount last-ping-sent last-ok-ping-reply last-ping-reply " +
		"down-after-milliseconds "
	for command, x := range map[string]struct {
		names  string
		values map[string]string
	}{
		"SENTINEL MASTER ebb": {first + "info-refresh role-reported role-reported-time config-epoch num-slaves num-other-sentinels quorum " +
			"failover-timeout parallel-syncs", map[string]string{"name": "ebb", "ip": "10.0.0.1", "port": "6379", "flags": "master",
			"config-epoch": "4", "num-slaves": "1", "num-other-sentinels": "1", "quorum": "2", "down-after-milliseconds": "2000"}},
		"SENTINEL REPLICAS ebb": {first + "info-refresh role-reported role-reported-time master-link-down-time master-link-status master-host " +
			"master-port slave-priority slave-repl-offset replica-announced", map[string]string{"name": "10.0.0.2:6379", "flags": "slave",
			"master-link-status": "ok", "master-host": "10.0.0.1", "slave-repl-offset": "500", "last-ok-ping-reply": "200"}},
		"SENTINEL SENTINELS ebb": {first + "last-hello-message voted-leader voted-leader-epoch", map[string]string{"name": w.ID,
			"port": "26379", "flags": "sentinel"}},
	} {
		names, values := fields(t, asked(options(view()), command))
		if got := strings.Join(names, " "); got != x.names {
			t.Errorf("%s: the fields are %s, want %s", command, got, x.names)
		}
		for name, want := range x.values {
			if values[name] != want {
				t.Errorf("%s: %s is %q, want %q", command, name, values[name], want)
			}
		}
	}
	masters, slaves := asked(options(view()), "SENTINEL MASTERS"), asked(options(view()), "SENTINEL SLAVES ebb")
	if want := "*1\r\n" + asked(options(view()), "SENTINEL MASTER ebb"); masters != want {
		t.Errorf("MASTERS answers %q, want %q", masters, want)
	}
	if want := asked(options(view()), "SENTINEL REPLICAS ebb"); slaves != want {
		t.Errorf("SLAVES answers %q, want %q", slaves, want)
	}
	down := view()
	down.Master.Down, down.Replicas[0].Down, down.Replicas[0].Linked = true, true, false
	if _, values := fields(t, asked(options(down), "SENTINEL MASTER ebb")); values["flags"] != "s_down,master" {
		t.Errorf("a silent master has the flags %q", values["flags"])
	}
	if _, values := fields(t, asked(options(down), "SENTINEL REPLICAS ebb")); values["flags"] != "s_down,slave,disconnected" ||
		values["master-link-status"] != "err" {
		t.Errorf("a silent replica: %v", values)
	}
	if info := asked(options(down), "INFO sentinel"); !strings.Contains(info,
		"\r\nmaster0:name=ebb,status=sdown,address=10.0.0.1:6379,slaves=1,sentinels=2\r\n") || strings.Contains(info, "# Server") {
		t.Errorf("INFO sentinel: %q", info)
	}
	if info := asked(options(view()), "INFO"); !strings.Contains(info, "redis_mode:sentinel\r\n") || !strings.Contains(info, "status=ok") {
		t.Errorf("INFO: %q", info)
	}
}

func TestAFailoverThatCannotBeginSaysWhy(t *testing.T) {
	for want, err := range map[string]error{"-NOGOODSLAVE No suitable replica to promote\r\n": ErrNoReplica,
		"-INPROG Failover already in progress\r\n": ErrUnderWay, "-ERR why\r\n": errors.New("why")} {
		o := options(view())
		o.Failover = func(context.Context) error { return err }
		if got := asked(o, "SENTINEL FAILOVER ebb"); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

const wrongPass = "WRONGPASS invalid username-password pair or user is disabled."

func TestAClientLogsInFirst(t *testing.T) {
	o := options(view())
	o.Access = &users{named: map[string]*user{"default": {password: "secret"}}}
	for commands, want := range map[string]string{
		"PING":                            "-NOAUTH Authentication required.\r\n",
		"AUTH wrong;PING":                 "-" + wrongPass + "\r\n-NOAUTH Authentication required.\r\n",
		"AUTH secret;PING":                "+OK\r\n+PONG\r\n",
		"AUTH default secret;PING":        "+OK\r\n+PONG\r\n",
		"AUTH other secret;PING":          "-" + wrongPass + "\r\n-NOAUTH Authentication required.\r\n",
		"AUTH secret;AUTH wrong;PING":     "+OK\r\n-" + wrongPass + "\r\n-NOAUTH Authentication required.\r\n",
		"AUTH a b c":                      "-ERR syntax error\r\n",
		"HELLO 2 AUTH default wrong":      "-" + wrongPass + "\r\n",
		"QUIT":                            "+OK\r\n",
		"AUTH secret;CLIENT GETNAME;PING": "+OK\r\n$-1\r\n+PONG\r\n",
	} {
		if got := asked(o, strings.Split(commands, ";")...); got != want {
			t.Errorf("%s: %q, want %q", commands, got, want)
		}
	}
	if got := asked(o, "HELLO 3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called") {
		t.Errorf("HELLO without AUTH: %q", got)
	}
	if got := asked(o, "HELLO 3 AUTH default secret"); !strings.HasPrefix(got, "%6\r\n") {
		t.Errorf("HELLO with AUTH: %q", got)
	}
}

func TestOnlyAUserWithThePermissionChangesTheGroup(t *testing.T) {
	const no, notYou = "NOAUTH log in", "NOPERM not you"
	reader := &user{password: "r", refusal: notYou}
	o := options(view())
	o.Access = &users{guest: &user{refusal: no}, named: map[string]*user{"default": {password: "secret"}, "reader": reader,
		"gone": {password: "g", off: true}, "switcher": {password: "s", refusal: "group recover: " + notYou}}}
	o.Recover = func(_ context.Context, to string) error { return errors.New("recovers " + to) }
	const failover = "SENTINEL FAILOVER ebb"
	for commands, want := range map[string]string{
		"PING;" + failover:                                         "+PONG\r\n-" + no + "\r\n",
		"SENTINEL RECOVER ebb h 1 ACCEPT-LOSS":                     "-" + no + "\r\n",
		"AUTH secret;" + failover:                                  "+OK\r\n+OK\r\n",
		"AUTH reader r;PING;" + failover:                           "+OK\r\n+PONG\r\n-" + notYou + "\r\n",
		"AUTH gone g;" + failover:                                  "+OK\r\n-" + no + "\r\n",
		"AUTH switcher s;" + failover:                              "+OK\r\n+OK\r\n",
		"AUTH switcher s;SENTINEL RECOVER ebb h 1 ACCEPT-LOSS":     "+OK\r\n-" + notYou + "\r\n",
		"AUTH default secret;SENTINEL RECOVER ebb h 1 accept-loss": "+OK\r\n-ERR recovers h:1\r\n",
		"AUTH secret;SENTINEL RECOVER other h 1 ACCEPT-LOSS":       "+OK\r\n-ERR No such master with that name\r\n",
		"AUTH secret;SENTINEL RECOVER ebb h 1":                     "+OK\r\n-ERR wrong number of arguments for 'sentinel|recover' command\r\n",
		"AUTH wrong;" + failover:                                   "-" + wrongPass + "\r\n-" + no + "\r\n",
		"AUTH secret;SENTINEL RECOVER ebb h 1 NO;PING": "+OK\r\n-ERR it may lose acknowledged writes: " +
			"SENTINEL RECOVER group host port ACCEPT-LOSS does it\r\n+PONG\r\n",
	} {
		if got := asked(o, strings.Split(commands, ";")...); got != want {
			t.Errorf("%s: %q, want %q", commands, got, want)
		}
	}
	o.Access.(*users).guest = nil
	if got := asked(o, failover); got != "-NOAUTH Authentication required.\r\n" {
		t.Errorf("a client that has to log in: %q", got)
	}
}

func TestWhatChangesIsPublished(t *testing.T) {
	promoted := view()
	promoted.Master, promoted.Replicas = b, []Server{a}
	silent := view()
	silent.Master.Down, silent.Others[0].Down = true, true
	gone := view()
	gone.Replicas[0].Down = true
	starting := View{Name: "ebb"}
	const at = " @ ebb 10.0.0.1 6379"
	for _, x := range []struct {
		name     string
		old, now View
		want     []event
	}{
		{"nothing", view(), view(), nil},
		{"a promotion", view(), promoted, []event{{"+slave", "slave 10.0.0.1:6379 10.0.0.1 6379 @ ebb 10.0.0.2 6379"},
			{"+switch-master", "ebb 10.0.0.1 6379 10.0.0.2 6379"}}},
		{"a silent master", view(), silent,
			[]event{{"+sdown", "sentinel " + w.ID + " 10.0.0.3 26379" + at}, {"+sdown", "master ebb 10.0.0.1 6379"}}},
		{"it is heard again", silent, view(),
			[]event{{"-sdown", "sentinel " + w.ID + " 10.0.0.3 26379" + at}, {"-sdown", "master ebb 10.0.0.1 6379"}}},
		{"a silent replica", view(), gone, []event{{"+sdown", "slave 10.0.0.2:6379 10.0.0.2 6379" + at}}},
		{"the beginning", starting, view(), []event{{"+slave", "slave 10.0.0.2:6379 10.0.0.2 6379" + at}}},
		{"no master", view(), starting, nil},
	} {
		if got := events(x.old, x.now); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: got %q, want %q", x.name, got, x.want)
		}
	}
}

func TestASubscriberOfRESP2MayDoLittleElse(t *testing.T) {
	got := asked(options(view()), "SUBSCRIBE +switch-master", "SENTINEL MYID", "PING", "UNSUBSCRIBE", "PING", "UNSUBSCRIBE")
	want := "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n" +
		"-ERR Can't execute 'sentinel': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n" +
		"*2\r\n$4\r\npong\r\n$0\r\n\r\n" +
		"*3\r\n$11\r\nunsubscribe\r\n$14\r\n+switch-master\r\n:0\r\n+PONG\r\n*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var many []string
	for i := range maxChannels + 1 {
		many = append(many, fmt.Sprint("PSUBSCRIBE ", i))
	}
	if got := asked(options(view()), many...); !strings.Contains(got, "-ERR a client may have at most 64 channels") {
		t.Errorf("%d patterns: %q", len(many), got)
	}
}

// service is a Service in virtual time with a changing view.
type service struct {
	*Service
	users *users     // read-only while there are clients
	mu    sync.Mutex // guards view
	view  View
}

// elsewhere makes the clients of a listener appear to be on another machine.
type elsewhere struct{ *memnet.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return remote{c}, err
}

type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }

// clients returns the number of connections.
func (s *service) clients() int {
	s.Service.mu.Lock()
	defer s.Service.mu.Unlock()
	return len(s.conns)
}

func (s *service) set(v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = v
}

func bubble(t *testing.T, test func(s *service, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen("sentinel")
		s := &service{view: view()}
		o := options(view())
		o.Listeners, o.Period, o.Patience = []net.Listener{elsewhere{l}}, 100*time.Millisecond, time.Second
		s.users = &users{guest: &user{}}
		o.Access = s.users
		o.View = func() View { s.mu.Lock(); defer s.mu.Unlock(); return s.view }
		s.Service = Serve(*o)
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(s, func() net.Conn {
			c, err := l.Dial()
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}

// gets fails the test unless the next bytes to a client are want.
func gets(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got[:n], err, want)
	}
}

func TestASubscriberHearsOfThePromotion(t *testing.T) {
	bubble(t, func(s *service, dial func() net.Conn) {
		c, other := dial(), dial()
		defer other.Close()
		defer c.Close()
		for _, piece := range []string{"*2\r\n$9\r\nSUBSCR", "IBE\r\n$14\r\n+switch-master\r\nPSUBSCRIBE +s*\r\n"} {
			if _, err := io.WriteString(c, piece); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		gets(t, c, "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n*3\r\n$10\r\npsubscribe\r\n$3\r\n+s*\r\n:2\r\n")
		next := view()
		next.Master, next.Replicas = b, []Server{a}
		s.set(next)
		time.Sleep(200 * time.Millisecond)
		const text = "ebb 10.0.0.1 6379 10.0.0.2 6379"
		gets(t, c, "*4\r\n$8\r\npmessage\r\n$3\r\n+s*\r\n$6\r\n+slave\r\n$53\r\nslave 10.0.0.1:6379 10.0.0.1 6379 @ ebb 10.0.0.2 6379\r\n"+
			"*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$31\r\n"+text+"\r\n"+
			"*4\r\n$8\r\npmessage\r\n$3\r\n+s*\r\n$14\r\n+switch-master\r\n$31\r\n"+text+"\r\n")
		if _, err := io.WriteString(other, "SENTINEL GET-MASTER-ADDR-BY-NAME ebb\r\n\r\nQUIT\r\n"); err != nil {
			t.Fatal(err)
		}
		gets(t, other, "*2\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n+OK\r\n")
		if rest, err := io.ReadAll(other); err != nil || len(rest) > 0 {
			t.Errorf("behind QUIT: %q, %v", rest, err)
		}
	})
}

func TestASubscriberWhoseUserIsRemovedHearsNothing(t *testing.T) {
	bubble(t, func(s *service, dial func() net.Conn) {
		app := &user{password: "p"}
		s.users.guest, s.users.named = nil, map[string]*user{"app": app}
		c := dial()
		defer c.Close()
		if _, err := io.WriteString(c, "AUTH app p\r\nSUBSCRIBE +switch-master\r\n"); err != nil {
			t.Fatal(err)
		}
		gets(t, c, "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n")
		app.off = true
		next := view()
		next.Master, next.Replicas = b, []Server{a}
		s.set(next)
		time.Sleep(200 * time.Millisecond)
		if n := s.clients(); n != 0 {
			t.Errorf("%d clients of a user that was removed are still there", n)
		}
	})
}

func TestClientsAreBounded(t *testing.T) {
	bubble(t, func(s *service, dial func() net.Conn) {
		for what, in := range map[string]string{"a long request": "*1\r\n$9999999\r\n", "many words": "*9999\r\n",
			"a long line":                strings.Repeat("x", 40<<10),
			"half a request without end": "*2\r\n$4\r\nPING\r\n$16000\r\n" + strings.Repeat("x", 15000) + strings.Repeat("y", 900)} {
			c := dial()
			if _, err := io.WriteString(c, in); err != nil && !errors.Is(err, net.ErrClosed) && what != "a long line" {
				t.Fatal(err)
			}
			if what != "half a request without end" {
				got, err := io.ReadAll(c)
				if err == nil && !strings.HasPrefix(string(got), "-ERR Protocol error") && len(got) > 0 {
					t.Errorf("%s: %q", what, got)
				}
			}
			c.Close()
		}
		// A client that does not read is disconnected.
		c := dial()
		defer c.Close()
		if _, err := io.WriteString(c, strings.Repeat("INFO\r\n", 2000)); err != nil && !strings.Contains(err.Error(), "pipe") {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := s.clients(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// say sends requests.
func say(t *testing.T, c net.Conn, requests string) {
	t.Helper()
	if _, err := io.WriteString(c, requests); err != nil {
		t.Fatal(err)
	}
}

func TestConnectionsThatDoNothingKeepNoClientOut(t *testing.T) {
	bubble(t, func(s *service, dial func() net.Conn) {
		var all []net.Conn
		for range maxClients {
			all = append(all, dial())
			synctest.Wait()
		}
		say(t, all[0], "PING\r\n")
		gets(t, all[0], "+PONG\r\n")
		c := dial()
		defer c.Close()
		say(t, c, "PING\r\n")
		gets(t, c, "+PONG\r\n")
		if rest, err := io.ReadAll(all[1]); err != nil || len(rest) > 0 {
			t.Errorf("the connection that was silent for the longest time gets %q, %v, want its end", rest, err)
		}
		say(t, all[0], "PING\r\n")
		gets(t, all[0], "+PONG\r\n")
		if n := s.clients(); n != maxClients {
			t.Errorf("%d connections, want %d", n, maxClients)
		}
		for _, c := range all {
			c.Close()
		}
	})
}

func TestASilentClientIsClosedUnlessItHasSubscribed(t *testing.T) {
	bubble(t, func(_ *service, dial func() net.Conn) {
		silent, asks, subscribed := dial(), dial(), dial()
		defer subscribed.Close()
		defer asks.Close()
		const confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
		say(t, subscribed, "SUBSCRIBE x\r\n")
		gets(t, subscribed, confirmed)
		began := time.Now()
		for range 4 {
			time.Sleep(maxSilence / 2)
			say(t, asks, "PING\r\n")
			gets(t, asks, "+PONG\r\n")
		}
		if _, err := io.ReadAll(silent); err != nil || time.Since(began) != 2*maxSilence {
			t.Errorf("the silent client: %v", err)
		}
		say(t, subscribed, "PING\r\nUNSUBSCRIBE\r\n")
		gets(t, subscribed, "*2\r\n$4\r\npong\r\n$0\r\n\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n")
		began = time.Now()
		if _, err := io.ReadAll(subscribed); err != nil || time.Since(began) != maxSilence {
			t.Errorf("one that has subscribed no longer is closed after %v, %v, want %v", time.Since(began), err, maxSilence)
		}
	})
}

func TestSubscribersLeaveRoomForClientsThatAsk(t *testing.T) {
	bubble(t, func(_ *service, dial func() net.Conn) {
		var all []net.Conn
		const confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
		for range maxSubscribers {
			c := dial()
			all = append(all, c)
			say(t, c, "SUBSCRIBE x\r\n")
			gets(t, c, confirmed)
		}
		c := dial()
		defer c.Close()
		say(t, c, "SUBSCRIBE x\r\nPING\r\n")
		gets(t, c, fmt.Sprintf("-ERR at most %d clients may have channels and patterns here\r\n+PONG\r\n", maxSubscribers))
		say(t, all[0], "UNSUBSCRIBE x\r\n")
		gets(t, all[0], "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n")
		all[1].Close()
		synctest.Wait()
		for _, c := range []net.Conn{c, all[0]} {
			say(t, c, "SUBSCRIBE x\r\n")
			gets(t, c, confirmed)
		}
		for _, c := range all {
			c.Close()
		}
	})
}

func TestProtectedModeServesThisMachineAlone(t *testing.T) {
	bubble(t, func(s *service, dial func() net.Conn) {
		s.users.denied = "DENIED protected mode"
		c := dial()
		defer c.Close()
		if got, err := io.ReadAll(c); err != nil || string(got) != "-DENIED protected mode\r\n" {
			t.Errorf("a client of another machine gets %q, %v", got, err)
		}
	})
	for _, local := range []net.Addr{memnet.Addr("x"), &net.TCPAddr{IP: net.IPv6loopback}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}} {
		if !isLocal(at{from: local}) {
			t.Errorf("%v is not this machine", local)
		}
	}
}

// at is a connection with a given remote address.
type at struct {
	net.Conn
	from net.Addr
}

func (c at) RemoteAddr() net.Addr { return c.from }
