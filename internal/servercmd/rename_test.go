package servercmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/session"
)

// hashed is a name as redis.conf recommends: longer than any command's own name.
const hashed = "b840fc02d524045429941cc15f59e41cb7be6c52"

// renames are rename-command directives: a command that is removed, one that is renamed, one with a name
// longer than MaxName, a container, a name that another command had, a chain.
var renames = []string{
	"--rename-command", "FLUSHALL", "", "--rename-command", "set", "KSet", "--rename-command", "CONFIG", hashed,
	"--rename-command", "EXEC", "doit", "--rename-command", "GETSET", "Set", "--rename-command", "append", "a1",
	"--rename-command", "A1", "a2",
	"--rename-command", "ACL", "users",
}

// The names that clients may call, and the errors for others, are the same as in redis-server.
func TestRenamedCommandsAnswerAsInRedis(t *testing.T) {
	var requests [][]string
	for line := range strings.Lines(`KSET a 1
kset a 2
KSET a
GET a
SET a 3
GETSET a 3
GET a
SET a
FLUSHALL
flushall async
APPEND a x
A1 a x
A2 a x
CONFIG GET maxmemory
` + hashed + ` GET maxmemory
` + hashed + ` nosuch
` + hashed + ` SET maxmemory 0
COMMAND COUNT nosuch
COMMAND GETKEYS kset a b
COMMAND GETKEYS config get b
COMMAND GETKEYS flushall async
COMMAND GETKEYSANDFLAGS set a b
COMMAND INFO flushall config append ` + hashed + `|nosuch
COMMAND LIST FILTERBY PATTERN set
COMMAND LIST FILTERBY PATTERN kset
COMMAND LIST FILTERBY PATTERN flush*
COMMAND LIST FILTERBY PATTERN append
MULTI
KSET m 1
EXEC
doit
EXISTS m
MULTI
KSET m 1
doit x
doit
MULTI
SET m
doit
MULTI
KSET m 1
SET m 2
GET m
doit
ACL WHOAMI
users SETUSER bob on nopass +kset
users SETUSER bob on nopass ~* +set -flushall +config|get
users SETUSER bob +` + hashed + `|get
users DRYRUN bob flushall
users DRYRUN bob append a b
users DRYRUN bob kset a b
users DRYRUN bob set a b
users DRYRUN bob a2 a b
users nosuch
EVAL return|redis.call('kset','s','1') 0
EVAL return|redis.call('get','s') 0
EVAL return|redis.pcall('set','s','2')['ok'] 0
EVAL return|redis.acl_check_cmd('kset','s','2') 0
`) {
		words := strings.Fields(line)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "return|", "return ")
		}
		requests = append(requests, words)
	}
	beside(t, requests, renames...)
}

func renamed(t *testing.T, options ...string) *session.Session {
	t.Helper()
	_, c := renamedService(t, options...)
	return c
}

func renamedService(t *testing.T, options ...string) (*session.Service, *session.Session) {
	t.Helper()
	cfg, err := config.Load(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := engine.Open(engine.Options{})
	svc, err := session.NewService(session.Options{DB: db, Table: Table, Config: cfg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := svc.NewSession(nil)
	t.Cleanup(func() { c.Closed(nil); svc.Close(); db.Close() })
	return svc, c
}

func say(c *session.Session, line string) string {
	var args [][]byte
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	return c.Do(args...).Str
}

// Even directly after a call by the new name, which is remembered.
func TestANameThatIsTakenAwayIsNotAnswered(t *testing.T) {
	c := renamed(t, renames...)
	for _, line := range []string{"KSET k 1", "FLUSHALL", "CONFIG GET port", "APPEND k v", "A1 k v", "EXEC",
		"EVAL return(redis.call('flushall')) 0"} {
		say(c, "KSET k 1")
		if got := say(c, line); line[0] != 'K' && !strings.Contains(got, "nknown") {
			t.Errorf("%s: %q", line, got)
		}
	}
	// The container's HELP has its new name.
	if v := c.Do([]byte(hashed), []byte("help")); len(v.Elems) == 0 ||
		!strings.HasPrefix(v.Elems[0].Str, strings.ToUpper(hashed)+" <subcommand>") {
		t.Errorf("%+v", v)
	}
}

// A log and a master use the commands' original names, and the new ones if there is no such command: Redis
// writes the name that the client has called.
func TestALogKnowsCommandsThatClientsMayNotCall(t *testing.T) {
	svc, c := renamedService(t, "--rename-command", "SET", "kset", "--rename-command", "DEL", "", "--rename-command", "GETSET", "SET")
	for _, line := range []string{"SET k 1 PXAT 9999999999999", "kset l 1", "APPEND k 2", "SET x 1", "DEL x"} {
		var args [][]byte
		for _, w := range strings.Fields(line) {
			args = append(args, []byte(w))
		}
		if err := svc.Replay([]engine.Effect{{Args: args}}); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if got := say(c, "GET k") + say(c, "GET l"); got != "121" {
		t.Error(got)
	}
	if c.Do([]byte("EXISTS"), []byte("x")).Int != 0 {
		t.Error("DEL of the log was not done")
	}
}

func TestARenameOfNothingIsRefused(t *testing.T) {
	for _, x := range []struct {
		options []string
		want    string
		is      error
	}{
		{[]string{"nosuch", "x"}, `command line: 'rename-command nosuch "x"': No such command in rename-command`, command.ErrNoSuchCommand},
		{[]string{"config|get", ""}, `command line: 'rename-command config|get ""': No such command in rename-command`, command.ErrNoSuchCommand},
		{[]string{"get", "SET"}, `command line: 'rename-command get "SET"': Target command name already exists`, command.ErrNameTaken},
		{[]string{"get", "", "--rename-command", "get", ""}, `command line: 'rename-command get ""': No such command in rename-command`,
			command.ErrNoSuchCommand},
	} {
		cfg, err := config.Load(append([]string{"--rename-command"}, x.options...), nil)
		if err != nil {
			t.Fatal(err)
		}
		db := engine.Open(engine.Options{})
		if _, err := session.NewService(session.Options{DB: db, Table: Table, Config: cfg}, nil); !errors.Is(err, x.is) || err.Error() != x.want {
			t.Errorf("%v: %v", x.options, err)
		}
		db.Close()
	}
}
