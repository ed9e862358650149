package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func runHealth(t *testing.T, args ...string) (line string, healthy bool) {
	t.Helper()
	var out bytes.Buffer
	cmd := healthCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	var status exitStatus
	if err != nil && (!errors.As(err, &status) || status != 1) {
		t.Fatalf("%q: %v", args, err)
	}
	return strings.TrimSpace(out.String()), err == nil
}

func TestHealthOfEbb(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	check := func(want string, healthy bool, args ...string) {
		t.Helper()
		if line, ok := runHealth(t, append(args, "-s", s.socket)...); ok != healthy || !strings.Contains(line, want) {
			t.Errorf("%q (%v), want %q (%v)", line, ok, want, healthy)
		}
	}
	check("ok: ebb ", true)
	check("replies: ebb ", true, "--live")
	s.ask("REPLICAOF 127.0.0.1 1")
	check("the link to its master 127.0.0.1:1 is down", false)
	check("replies", true, "--live")
	s.ask("REPLICAOF NO ONE")
	s.ask("CONFIG SET requirepass secret")
	check("asks for a password", true)
	check("refuses this password", true, "-a", "wrong")
	check("ok: ebb", true, "-a", "secret")
	if line, ok := runHealth(t, "-s", s.socket+".none"); ok || !strings.Contains(line, "no such file") {
		t.Errorf("%q, %v", line, ok)
	}
}

func TestHealthReadsTheServersEnvironment(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0", "--requirepass", "secret")
	t.Setenv("EBB_PORT", "0")
	t.Setenv("EBB_UNIXSOCKET", s.socket)
	t.Setenv("EBB_REQUIREPASS", "secret")
	if line, ok := runHealth(t); !ok || !strings.Contains(line, "ok: ebb") {
		t.Errorf("%q, %v", line, ok)
	}
}

// A container may have only a TLS port, and the server may require client certificates.
func TestHealthFindsAServerThatHasTLSAlone(t *testing.T) {
	dir := t.TempDir()
	cert, key := certtest.Make(t, "shop.example")
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := strconv.Itoa(realserver.FreePort(t))
	for name, value := range map[string]string{"EBB_PORT": "0", "EBB_TLS_PORT": port, "EBB_TLS_CERT_FILE": filepath.Join(dir, "cert.pem"),
		"EBB_TLS_KEY_FILE": filepath.Join(dir, "key.pem"), "EBB_TLS_CA_CERT_FILE": filepath.Join(dir, "cert.pem"),
		"EBB_ARGS": "--accept-clock no --console"} {
		t.Setenv(name, value)
	}
	startServe(t, "--http", "127.0.0.1:0") // it also has a socket, which the environment does not name
	if line, ok := runHealth(t); !ok || !strings.Contains(line, "127.0.0.1:"+port+": ok: ebb") {
		t.Errorf("%q, %v", line, ok)
	}
}

func TestHealthOfRedis(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	if line, ok := runHealth(t, "-u", "redis://"+addr); !ok || !strings.Contains(line, "ok: redis 7") {
		t.Errorf("%q, %v", line, ok)
	}
	replica := realserver.Start(t, "redis-server", "--replicaof", "127.0.0.1 1")
	if line, ok := runHealth(t, "-u", "redis://"+replica); ok || !strings.Contains(line, "the link to its master 127.0.0.1:1 was not up yet") {
		t.Errorf("%q, %v", line, ok)
	}
}
