package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/server"
)

func TestAServerOfAGroupFindsItsMaster(t *testing.T) {
	master, none := role{name: "master"}, role{}
	slaveOf := func(addr string) role { return role{"slave", addr} }
	addrs := []string{"a:1", "b:1", "c:1"}
	for _, x := range []struct {
		name  string
		self  int
		roles []role
		last  role
		want  string // "" if this server is the master
	}{
		{"a new group, first", 0, []role{none, none, none}, none, ""},
		{"a new group, third", 2, []role{none, none, none}, none, "a:1"},
		{"a master runs", 0, []role{none, master, none}, none, "b:1"},
		{"a master runs, and this was one before", 0, []role{none, slaveOf("c:1"), master}, master, "c:1"},
		{"a replica knows the master, which does not reply", 0, []role{none, slaveOf("c:1"), none}, none, "c:1"},
		{"a replica waits for this one", 1, []role{slaveOf("b:1"), none, none}, none, ""},
		{"all are down, and another was the master", 0, []role{none, none, none}, slaveOf("b:1"), "b:1"},
		{"all are down, and this was the master", 1, []role{none, none, none}, master, ""},
	} {
		p := &peers{addrs: addrs, self: x.self}
		if got := p.choose(x.roles, x.last); got != x.want {
			t.Errorf("%s: follows %q, want %q", x.name, got, x.want)
		}
	}
}

func TestPeersMustNameThisMachine(t *testing.T) {
	p, rest, err := takePeers([]string{"--port", "1", "--peers", "ebb-0.svc:6379, ebb-1.svc:6379", "--dir", "d"}, "ebb-1")
	if err != nil || p.self != 1 || len(p.addrs) != 2 || strings.Join(rest, " ") != "--port 1 --dir d" {
		t.Errorf("%+v %q %v", p, rest, err)
	}
	for _, list := range []string{"ebb-0.svc:6379", "ebb-1.svc", ""} {
		if _, _, err := takePeers([]string{"--peers", list}, "ebb-1"); err == nil {
			t.Errorf("--peers %q is accepted", list)
		}
	}
	if p, _, err := takePeers([]string{"--port", "1"}, "ebb-1"); p != nil || err != nil {
		t.Errorf("without --peers: %v %v", p, err)
	}
}

// loadConfig returns a configuration with a data directory.
func loadConfig(t *testing.T, args ...string) *config.Set {
	t.Helper()
	cfg, err := config.Load(append([]string{"--appendonly", "yes"}, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A master hands over, the servers record their new roles, and a server that restarts follows the new master.
func TestHandoverMovesTheMasterAndAServerThatStartsFollowsIt(t *testing.T) {
	ports := []int{realserver.FreePort(t), realserver.FreePort(t)}
	group := &peers{addrs: []string{fmt.Sprint("localhost:", ports[0]), fmt.Sprint("localhost:", ports[1])}}
	start := func(i int, more ...string) *server.Server {
		t.Helper()
		s, err := server.Start(t.Context(), server.Config{Addr: fmt.Sprint("127.0.0.1:", ports[i]), RequirePass: "secret",
			Directives: append([]string{"masterauth secret", "replica-announce-ip localhost", "repl-diskless-sync-delay 0"}, more...)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first := start(0)
	second := start(1, fmt.Sprint("replicaof localhost ", ports[0]))
	target := func(i int) loadgen.Target { return loadgen.Target{Addr: group.addrs[i], Password: "secret"} }
	c, err := target(0).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if v, err := c.Do(ctx, "SET", "k", "v"); err != nil || v.Err() != nil {
		t.Fatal(v, err)
	}
	if v, err := c.Do(ctx, "WAIT", "1", "30000"); err != nil || v.Int != 1 { // the replica is connected
		t.Fatal(v, err)
	}

	// The server records its role when it starts and when the role changes.
	dir := t.TempDir()
	cfg := loadConfig(t, "--dir", dir, "--masterauth", "secret")
	own, err := target(0).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 10)
	refused := false
	stop := group.keep(cfg, own, func(_ context.Context, r role) error {
		if !refused { // the first attempt fails and is repeated
			refused = true
			return errors.New("planted")
		}
		told <- r.name
		return nil
	}, slog.New(slog.DiscardHandler))
	defer func() { stop() }()
	await := func(name, file string) {
		t.Helper()
		select {
		case got := <-told:
			if got != name {
				t.Errorf("told %q, want %q", got, name)
			}
		case <-ctx.Done():
			t.Fatalf("the role %s is not told", name)
		}
		if got := readRole(cfg).String(); got != file {
			t.Errorf("the file says %q, want %q", got, file)
		}
	}
	await("master", "master")

	if said, err := handOver(ctx, c, patience); err != nil || said != "the master is "+group.addrs[1] {
		t.Fatal(said, err)
	}
	await("slave", "slave "+group.addrs[1])
	if r, err := roleAt(ctx, target(1)); err != nil || r.name != "master" {
		t.Errorf("the replica is %v, %v", r, err)
	}
	if said, err := handOver(ctx, c, patience); err != nil || !strings.Contains(said, "already a replica of "+group.addrs[1]) {
		t.Error(said, err)
	}
	if master, err := group.master(ctx, cfg); err != nil || master != group.addrs[1] {
		t.Errorf("a server that starts follows %q, %v", master, err)
	}
	// A wrong password does not lead to a second master.
	if master, err := group.master(ctx, loadConfig(t, "--masterauth", "wrong")); err == nil || !strings.Contains(err.Error(), "masterauth") {
		t.Errorf("with a wrong password it follows %q, %v", master, err)
	}
	stop()
	stop = func() {}
	_ = c.Close()
	_, _ = first.Close(), second.Close()
	// All peers are down, so the file decides.
	if master, err := group.master(ctx, cfg); err != nil || master != group.addrs[1] {
		t.Errorf("after an outage of all it follows %q, %v", master, err)
	}
	if master, err := group.master(ctx, loadConfig(t, "--dir", t.TempDir())); err != nil || master != "" {
		t.Errorf("without a file the first follows %q, %v", master, err)
	}
}

func TestHandoverWithoutAReplicaFails(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	cmd := handoverCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs([]string{"-s", s.socket})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "no replica can take over") {
		t.Error(err)
	}
}

func TestServeWritesItsRole(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := startServe(t, "--http", "127.0.0.1:0", "--dir", dir, "--peers", host+":1")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, roleFile)); err != nil || string(text) != "master\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestThePodGetsALabel(t *testing.T) {
	var asked []string
	status := http.StatusForbidden
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ",
			r.Header.Get("Content-Type"), " ", string(body)))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "planted")
	}))
	defer api.Close()
	account := t.TempDir()
	for name, text := range map[string][]byte{"namespace": []byte("shop"), "token": []byte("t1\n"),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})} {
		if err := os.WriteFile(filepath.Join(account, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(api.URL, "https://"), ":")
	vars := map[string]string{"EBB_POD_ROLE_LABEL": "ebb/role", "EBB_POD_NAME": "ebb-1", "KUBERNETES_SERVICE_HOST": host,
		"KUBERNETES_SERVICE_PORT": port}
	env := func(name string) string { return vars[name] }
	l, err := podLabelFrom(env, account)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.set(t.Context(), role{"slave", "x:1"}); err == nil || !strings.Contains(err.Error(), "403 Forbidden: planted") {
		t.Errorf("a refusal: %v", err)
	}
	status = http.StatusOK
	if err := os.WriteFile(filepath.Join(account, "token"), []byte("t2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.set(t.Context(), role{name: "master"}); err != nil {
		t.Error(err)
	}
	const path, kind = "PATCH /api/v1/namespaces/shop/pods/ebb-1 Bearer ", " application/merge-patch+json "
	want := []string{path + "t1" + kind + `{"metadata":{"labels":{"ebb/role":"replica"}}}`,
		path + "t2" + kind + `{"metadata":{"labels":{"ebb/role":"master"}}}`}
	if strings.Join(asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked:\n%s\nwant:\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
	delete(vars, "EBB_POD_NAME")
	if _, err := podLabelFrom(env, account); err == nil {
		t.Error("without the pod's name there is no error")
	}
	delete(vars, "EBB_POD_ROLE_LABEL")
	if l, err := podLabelFrom(env, account); l != nil || err != nil {
		t.Errorf("without the variable: %v %v", l, err)
	}
}
