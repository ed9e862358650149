package servercmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/wire"
)

// The value of a secret directive is in no log.
func TestSecretsOfDirectivesStandInNoLog(t *testing.T) {
	c := renamed(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000")
	n := 0
	for _, d := range config.Directives() {
		secret := d.Sensitive
		for _, word := range []string{"pass", "masterauth", "masteruser", "secret"} {
			secret = secret || strings.Contains(d.Name, word)
		}
		if !secret {
			continue
		}
		n++
		for _, name := range []string{d.Name, strings.ToUpper(d.Name)} {
			if got := say(c, "CONFIG SET "+name+" hunter2"); got != "OK" {
				t.Errorf("CONFIG SET %s: %s", name, got)
			}
		}
		say(c, "CONFIG SET "+d.Name+" hunter2 nosuch x")
		if err := config.New().ParseArgs([]string{"--" + d.Name, "hunter2", "hunter2"}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if n < 5 {
		t.Errorf("%d secrets", n)
	}
	if text := string(wire.AppendTTY(nil, c.Do([]byte("SLOWLOG"), []byte("GET"), []byte("-1")))); strings.Contains(text, "hunter2") ||
		strings.Count(text, "(redacted)") < 2*n {
		t.Errorf("SLOWLOG: %s", text)
	}
}

// A relative aclfile is in the directory of the data.
func TestARelativeACLFileIsInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	file := filepath.Join(dir, "users.acl")
	if err := os.WriteFile(file, []byte("user ann on nopass +@all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := renamed(t, "--dir", dir, "--aclfile", "users.acl")
	if got := say(c, "ACL SETUSER bob"); got != "OK" {
		t.Error(got)
	}
	if got := say(c, "ACL SAVE") + say(c, "ACL LOAD"); got != "OKOK" {
		t.Error(got)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "user ann ") ||
		!strings.Contains(string(text), "user bob ") {
		t.Errorf("%q, %v", text, err)
	}
}
