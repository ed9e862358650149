package charttest

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// patience is the time for which a test waits for what must come.
var patience = tier.Patience

func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(realserver.FreePort(t))
}

// The server starts with the arguments and the variables of the rendered container, and its probes succeed.
func TestTheServerStartsAsTheContainerSays(t *testing.T) {
	port := freePort(t)
	files, err := render(t,
		`{auth: {password: secret}, service: {port: `+port+`}, console: {enabled: true}, config: {maxmemory: 70%, save: "3600 1"}}`)
	if err != nil {
		t.Fatal(err)
	}
	var c any
	for _, o := range objects(t, files) {
		if o["kind"] == "StatefulSet" {
			c = at(t, o, "spec", "template", "spec", "containers", 0)
		}
	}
	dir, err := os.MkdirTemp("", "ebb") // a short path: one of a socket has at most 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, text := range map[string]string{"data/.keep": "", "run/.keep": "", "auth/password": "secret"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	http9121 := "127.0.0.1:" + freePort(t)
	places := strings.NewReplacer("/data", dir+"/data", "/run/ebb", dir+"/run", "/etc/ebb/auth", dir+"/auth", "0.0.0.0:9121", http9121)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.Getenv("TMPDIR"),
		"EBB_SERVICE_HOST=10.0.0.1", "EBB_PORT_6379_TCP=tcp://10.0.0.1:6379"} // links of a Service, of another pod's making
	for i := range len(at(t, c, "env").([]any)) {
		name, value := at(t, c, "env", i, "name").(string), at(t, c, "env", i, "value")
		if value == nil {
			value = "shop-ebb-0"
		}
		env = append(env, name+"="+places.Replace(value.(string)))
	}
	var args []string
	for i := range len(at(t, c, "args").([]any)) {
		args = append(args, at(t, c, "args", i).(string))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program := realserver.Ebb(t)
	server := realserver.CommandContext(ctx, program, args...)
	server.Env, server.Dir = env, dir
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer func() {
		_ = server.Process.Kill()
		wg.Wait()
		_ = server.Wait()
	}()
	ready := false
	lines := bufio.NewScanner(out)
	for !ready && lines.Scan() {
		ready = strings.HasPrefix(lines.Text(), "try it:")
	}
	if !ready {
		t.Fatalf("the server does not start: %v\n%s", lines.Err(), log.String())
	}
	wg.Go(func() { // until the end of the server
		for lines.Scan() {
		}
	})
	for _, probe := range []string{"readinessProbe", "livenessProbe"} {
		var words []string
		for i := range len(at(t, c, probe, "exec", "command").([]any)) {
			words = append(words, at(t, c, probe, "exec", "command", i).(string))
		}
		cmd := realserver.CommandContext(ctx, program, words[1:]...)
		cmd.Env = env
		if said, err := cmd.CombinedOutput(); err != nil || words[0] != "ebb" || strings.Contains(string(said), "password") {
			t.Errorf("%s: %v\n%s", probe, err, said)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+http9121+at(t, c, "startupProbe", "httpGet", "path").(string), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "10.0.0.7:9121" // kubelet asks by the pod's address
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Errorf("startupProbe: %s", reply.Status)
	}
	if log.Len() > 0 && strings.Contains(log.String(), "names no directive") {
		t.Errorf("the log:\n%s", log.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "data/appendonlydir")); err != nil {
		t.Errorf("the data is not in the volume: %v", err)
	}
}
