package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheEnvironmentGivesOptions(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("se cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args, misspelt, err := Environ([]string{"HOME=/root", "EBB_MAXMEMORY_POLICY=allkeys-lru", "EBB_REQUIREPASS_FILE=" + secret,
		"EBB_SAVE=60 1 300 10",
		"EBB_DIR=/not/made/yet", "EBB_ACLLOG_MAX_LEN=5", "EBB_MAXMEMROY=1gb", "EBB_SEED=1", "ebb_port=1",
		"EBB_ARGS=--port 7000 --bind '127.0.0.1 -::1'"})
	want := []string{"--maxmemory-policy", "allkeys-lru", "--requirepass", "se cret", "--save", "60 1 300 10", "--dir",
		"/not/made/yet", "--acllog-max-len", "5",
		"--port", "7000", "--bind", "127.0.0.1 -::1"}
	if err != nil || !slices.Equal(args, want) {
		t.Errorf("%q, %v; want %q", args, err, want)
	}
	if len(misspelt) != 1 || misspelt["EBB_MAXMEMROY"] != "EBB_MAXMEMORY" {
		t.Errorf("misspelt are %v", misspelt)
	}
	at := slices.Index(args, "--dir")
	s, err := Load(append(slices.Delete(args, at, at+2), "--port", "7001"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"port": "7001", "requirepass": "se cret", "save": "60 1 300 10", "bind": "127.0.0.1 -::1"} {
		if got := s.String(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAWrongVariableIsNamed(t *testing.T) {
	for _, x := range []struct{ variable, want string }{
		{"EBB_MAXMEMORY=lots", "EBB_MAXMEMORY"},
		{"EBB_REQUIREPASS_FILE=/no/such/file", "EBB_REQUIREPASS_FILE"},
		{"EBB_ARGS=--port '7", "EBB_ARGS"},
		{`EBB_RENAME_COMMAND=FLUSHALL ""`, "EBB_ARGS"},
		{"EBB_USER=ann on >pw", "configuration file"},
		{"EBB_INCLUDE=/nosuch", "EBB_INCLUDE"},
		{"EBB_REQUIREPASS_FILE=" + os.DevNull, "is empty"},
	} {
		if _, _, err := Environ([]string{x.variable}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.variable, err)
		}
	}
	if _, _, err := Environ([]string{"EBB_REQUIREPASS=a", "EBB_REQUIREPASS_FILE=" + os.DevNull}); err == nil {
		t.Error("two variables for one directive are accepted")
	}
	if _, _, err := Environ([]string{"EBB_REQUIREPASS=sec\xffret value"}); err != nil && strings.Contains(err.Error(), "sec") {
		t.Errorf("a secret is in the error: %v", err)
	}
}

// A server that its operator thinks is guarded must not be open without a word.
func TestAVariableThatNamesNoDirectiveIsNamed(t *testing.T) {
	_, misspelt, err := Environ([]string{"EBB_PASSWORD=x", "EBB_PASS=x", "EBB_REQUIRE_PASS=x", "EBB_NONSENSE_AT_ALL=1",
		"EBB_SERVICE_HOST=10.0.0.1", "EBB_SERVICE_PORT=6379", "EBB_SERVICE_PORT_REDIS=6379", "EBB_SHOP_PORT=tcp://10.0.0.1:6379",
		"EBB_SHOP_PORT_6379_TCP=tcp://10.0.0.1:6379", "EBB_PORT_6379_TCP_ADDR=10.0.0.1", "EBB_POD_NAME=a", "EBB_POD_ROLE_LABEL=r", "EBB_FULL=1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EBB_PASSWORD", "EBB_PASS", "EBB_REQUIRE_PASS"} {
		if misspelt[name] != "EBB_REQUIREPASS" {
			t.Errorf("%s is like %q", name, misspelt[name])
		}
	}
	if _, ok := misspelt["EBB_NONSENSE_AT_ALL"]; !ok || len(misspelt) != 4 {
		t.Errorf("%v", misspelt)
	}
}

// A secret may be a file without a line break, or with one; anything else is a mistake.
func TestTheFileOfAVariableHoldsItsValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]string{"": "is empty", "\n": "is empty", "\r\n": "is empty",
		"a\nb": "more than one line", "a\x00b": "value 0",
		"a": "", "a\n": "", "a\r\n": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := valueOf(path)
		if want == "" && (err != nil || got != "a") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// Every directive can be set by a variable, and no variable stands for two directives.
func TestEveryDirectiveHasAVariable(t *testing.T) {
	for _, d := range Directives() {
		if got := directiveOf(strings.TrimPrefix(variableOf(d.Name), environPrefix)); got != d {
			t.Errorf("%s sets %v, want %s", variableOf(d.Name), got, d.Name)
		}
	}
}

func TestMaxmemoryAsAShareOfTheMachine(t *testing.T) {
	defer func(f func() int64) { systemMemory = f }(systemMemory)
	systemMemory = func() int64 { return 1_000_003 }
	s := New()
	for share, want := range map[string]string{"70%": "700002", "100%": "1000003", "1%": "10000"} {
		if err := s.Change(false, "maxmemory", share); err != nil || s.String("maxmemory") != want {
			t.Errorf("%s is %s (%v), want %s", share, s.String("maxmemory"), err, want)
		}
	}
	for _, bad := range []string{"0%", "101%", "-5%", "7.5%", "%", "05%"} {
		if err := s.Change(false, "maxmemory", bad); err == nil {
			t.Errorf("%s is accepted as %s", bad, s.String("maxmemory"))
		}
	}
	systemMemory = func() int64 { return 0 }
	if err := s.Change(false, "maxmemory", "70%"); err == nil || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("without a known size: %v", err)
	}
}

// CONFIG REWRITE leaves a share in its file as it is written there.
func TestRewriteKeepsAShareOfMemory(t *testing.T) {
	defer func(f func() int64) { systemMemory = f }(systemMemory)
	systemMemory = func() int64 { return 1_000_000 }
	path := filepath.Join(t.TempDir(), "ebb.conf")
	if err := os.WriteFile(path, []byte("maxmemory 70%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New()
	if err := s.ParseFile(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Change(false, "timeout", "9"); err != nil {
		t.Fatal(err)
	}
	if err := s.Rewrite(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "maxmemory 70%\n") {
		t.Errorf("%v:\n%s", err, text)
	}
}
