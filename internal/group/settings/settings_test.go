package settings

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// values maps the names of directives to their values.
type values map[string]string

func (v values) String(name string) string { return v[name] }
func (v values) Bool(name string) bool     { return v[name] == "yes" }

func (v values) Int(name string) int64 {
	n, err := strconv.ParseInt(v[name], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// with returns the defaults, changed by pairs of name and value.
func with(pairs ...string) values {
	v := values{"group": "", "group-port": "0", "group-name": "ebb", "sentinel-port": "26379", "group-timeout": "2000",
		"min-sync-replicas": "0",
		"sync-level":        "memory", "sync-lease": "1000", "sync-lag": "1000", "sync-reads": "lease",
		"port": "6379", "tls-port": "0", "replicaof": "", "cluster-enabled": "no", "appendonly": "no",
		"appendfsync": "everysec", "masterauth": "", "masteruser": "", "requirepass": "", "aclfile": "",
		"tls-replication": "no", "replica-read-only": "yes"}
	for i := 0; i < len(pairs); i += 2 {
		v[pairs[i]] = pairs[i+1]
	}
	return v
}

// machine reports that the host b and loopback addresses are this machine.
func machine(host string) (bool, error) {
	switch host {
	case "b", "127.0.0.1", "::1", "localhost":
		return true, nil
	case "lost":
		return false, errors.New("lookup lost: no such host")
	}
	return false, nil
}

func TestWithoutAListThereIsNoGroup(t *testing.T) {
	if g, err := Read(with(), machine); g != nil || err != nil {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestADirectiveIsReadAsItIsMeant(t *testing.T) {
	g, err := Read(with("group", "a:7379, b:7379,c:7379", "masterauth", "s"), machine)
	want := &Settings{Name: "ebb", Nodes: []Node{{1, "a:7379"}, {2, "b:7379"}, {3, "c:7379"}}, Self: Node{2, "b:7379"}, Sentinel: 26379,
		Timeout: 2 * time.Second, Lease: time.Second, Lag: time.Second, Secret: "s"}
	if err != nil || !reflect.DeepEqual(g, want) {
		t.Errorf("%+v, %v, want %+v", g, err, want)
	}
	g, err = Read(with("group", "[::1]:7001,[::1]:7002,[::1]:7003", "group-port", "7003", "min-sync-replicas", "1", "sync-level", "disk",
		"appendonly", "yes", "appendfsync", "always", "sync-reads", "local", "tls-replication", "yes", "sentinel-port", "0"), machine)
	if err != nil || g.Self != (Node{3, "[::1]:7003"}) || g.K != 1 || g.Level != directory.Disk || !g.StaleOK || !g.Replicas ||
		g.Sentinel != 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestAWrongDirectiveIsNamedWithWhatWouldBeRight(t *testing.T) {
	three := func(pairs ...string) values {
		return with(append([]string{"group", "a:7379,b:7379,c:7379", "masterauth", "s"}, pairs...)...)
	}
	for want, v := range map[string]values{
		"one node: want 3 or 5":     with("group", "b:7379"),
		"want an odd number":        with("group", "a:1,b:1"),
		"at most 7":                 with("group", "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1"),
		"a:7379 twice":              with("group", "a:7379,a:7379,b:7379"),
		`"a": want the host`:        with("group", "a,b:7379,c:7379"),
		`":7379": want the`:         with("group", ":7379,b:7379,c:7379"),
		`"": want the host`:         with("group", "a:1,b:1,"),
		"from 1 to 65535":           with("group", "a:0,b:7379,c:7379"),
		"reach this one":            with("group", "0.0.0.0:7379,b:7379,c:7379"),
		"which cannot reach it":     with("group", "127.0.0.1:7379,b:7379,c:7379"),
		"set group-port to that":    with("group", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"),
		"no such host":              with("group", "a:1,lost:1,c:1"),
		"with group-port 7380":      three("group-port", "7380"),
		"no address of this":        with("group", "a:1,c:1,d:1"),
		"group-name is":             three("group-name", "a b"),
		"min-sync-replicas is":      three("min-sync-replicas", "3"),
		"group-timeout is":          three("group-timeout", "99", "sync-lease", "50"),
		"to group-timeout, 2s":      three("sync-lease", "2001"),
		"sync-lease is 0s":          three("sync-lease", "0"),
		"sync-lag is":               three("sync-lag", "0"),
		"port and the group's":      three("port", "7379"),
		"tls-port and the":          three("tls-port", "7379"),
		"sentinel-port and the":     three("sentinel-port", "7379"),
		"the port of clients":       three("sentinel-port", "6379"),
		"replicaof is set":          three("replicaof", "x 1"),
		"cluster-enabled is":        three("cluster-enabled", "yes"),
		"appendfsync is everysec":   three("sync-level", "disk", "appendonly", "yes"),
		"appendonly is no":          three("sync-level", "disk", "appendfsync", "always"),
		"masterauth is empty":       three("masterauth", ""),
		"replica-read-only must be": three("replica-read-only", "no"),
	} {
		if g, err := Read(v, machine); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want an error with %q", v["group"], g, err, want)
		}
	}
}

func TestTheNodesOfAGroupCanLogIn(t *testing.T) {
	for _, x := range []struct {
		want  string // "": the nodes can log in
		pairs []string
	}{
		{"", nil},
		{"", []string{"masterauth", "s", "requirepass", "s"}},
		{"", []string{"masterauth", "s", "masteruser", "u"}},
		{"", []string{"masterauth", "s", "aclfile", "users"}},
		{"requirepass is empty", []string{"masterauth", "s"}},
		{"masterauth is empty", []string{"requirepass", "s"}},
		{"are different", []string{"masterauth", "s", "requirepass", "other"}},
	} {
		if err := CheckLogin(with(x.pairs...)); (err != nil) != (x.want != "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %q", x.pairs, err, x.want)
		}
	}
}
