package servercmd_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// The expected states are those of redis-server 7.0.15; watch is that of 7.4.
func TestClientListShowsRefusedAndQueuedCommands(t *testing.T) {
	svc := services.Start(t)
	clock := svc.DB.Clock().(*clock.Manual)
	admin, c := svc.NewSession(nil), svc.NewSession(services.Quiet{})
	services.Ask(admin, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*", "&*")
	services.Exchange(c, "AUTH", "u", "x")
	idle := "flags=N multi=-1 watch=0 idle=0 cmd="
	for _, step := range []struct{ rule, request, want string }{
		{"", "WATCH w", "flags=N multi=-1 watch=1 idle=0 cmd=watch"},
		{"", "MULTI", "flags=x multi=0 watch=1 idle=0 cmd=multi"},
		{"", "SET k v", "flags=x multi=1 watch=1 idle=0 cmd=set"},
		{"-exec", "EXEC", idle + "exec"},
		{"-get", "GET k", idle + "get"},
		{"", "NOSUCH", idle + "NULL"},
		{"+get", "GET", idle + "get"},
		{"+exec", "MULTI", "flags=x multi=0 watch=0 idle=0 cmd=multi"},
		{"", "EXEC x", idle + "exec"},
		{"", "MULTI", "flags=x multi=0 watch=0 idle=0 cmd=multi"},
		{"", "NOSUCH", "flags=x multi=0 watch=0 idle=0 cmd=NULL"},
		{"", "EXEC", idle + "exec"},
		{"", "MULTI\r\nGET k\r\nEXEC\r\nNOSUCH x\r\nPING", idle + "ping"},
		{"", "PING\r\nGET", idle + "get"},
	} {
		if step.rule != "" {
			services.Ask(admin, "ACL", "SETUSER", "u", step.rule)
		}
		clock.Advance(5 * time.Second)
		c.Serve([]byte(step.request+"\r\n"), nil)
		line := services.Ask(admin, "CLIENT", "LIST", "ID", strconv.FormatInt(c.ID(), 10)).Str
		has := map[string]string{}
		for _, f := range strings.Fields(line) {
			name, value, _ := strings.Cut(f, "=")
			has[name] = value
		}
		got := "flags=" + has["flags"] + " multi=" + has["multi"] + " watch=" + has["watch"] + " idle=" + has["idle"] + " cmd=" + has["cmd"]
		if got != step.want {
			t.Errorf("after %q: %s, want %s", step.request, got, step.want)
		}
	}
}
