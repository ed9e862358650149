package servercmd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/resp"
)

// The examples of the cluster specification, and of redis-server.
func TestKeySlot(t *testing.T) {
	for key, want := range map[string]int{"123456789": 12739, "foo": 12182, "{user1000}.following": 3443, "{user1000}.followers": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "foo{bar}{zap}": 5061, "": 0, "k": 7629, "{a}b": 15495} {
		if got := routing.Slot([]byte(key)); got != want {
			t.Errorf("the slot of %q is %d, want %d", key, got, want)
		}
	}
}

func TestAClusterOfOneHasAllSlots(t *testing.T) {
	svc := services.Start(t, "--cluster-enabled", "yes")
	c := svc.NewSession(services.Quiet{})
	id := svc.NodeID()
	for request, want := range map[string]string{
		"CLUSTER MYID":  "$40\r\n" + id + "\r\n",
		"CLUSTER SLOTS": "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:2\r\n$40\r\n" + id + "\r\n*0\r\n",
		"CLUSTER NODES": id + " 127.0.0.1:2@10002 myself,master - 0 0 1 connected 0-16383\n",
		"CLUSTER INFO":  "cluster_state:ok\r\n",
		"CLUSTER SHARDS": "*1\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n*14\r\n$2\r\nid\r\n$40\r\n" + id +
			"\r\n$4\r\nport\r\n:2\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$18\r\n" +
			"replication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n",
		"CLUSTER LINKS":                 "*0\r\n",
		"CLUSTER KEYSLOT {a}b":          ":15495\r\n",
		"CLUSTER COUNTKEYSINSLOT 16384": "-ERR Invalid slot\r\n",
		"CLUSTER COUNTKEYSINSLOT x":     "-ERR value is not an integer or out of range\r\n",
		"CLUSTER GETKEYSINSLOT -1 1":    "-ERR Invalid slot or number of keys\r\n",
		"CLUSTER GETKEYSINSLOT 1 -1":    "-ERR Invalid slot or number of keys\r\n",
		"CLUSTER ADDSLOTS 1":            "-ERR CLUSTER ADDSLOTS is not supported: this node is the whole cluster\r\n",
		"CLUSTER MEET 127.0.0.1 7000":   "-ERR CLUSTER MEET is not supported: this node is the whole cluster\r\n",
		"READONLY":                      "+OK\r\n",
		"READWRITE":                     "+OK\r\n",
		"ASKING":                        "+OK\r\n",
		"HELLO":                         "$4\r\nmode\r\n$7\r\ncluster\r\n",
		"INFO cluster":                  "cluster_enabled:1\r\n",
		"INFO server":                   "redis_mode:cluster\r\n",
	} {
		if got := services.Exchange(c, strings.Fields(request)...); !strings.Contains(got, want) {
			t.Errorf("%s replies %q, want %q", request, got, want)
		}
	}
}

func TestAClusterOfOneIsAnnouncedWhereTheConfigurationSays(t *testing.T) {
	svc := services.Start(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "192.0.2.1", "--cluster-announce-port", "7000",
		"--cluster-announce-bus-port",
		"7001")
	if got := services.Exchange(svc.NewSession(services.Quiet{}), "CLUSTER", "NODES"); !strings.Contains(got, " 192.0.2.1:7000@7001 ") {
		t.Errorf("CLUSTER NODES replies %q", got)
	}
}

func TestTheKeysOfASlotAreFound(t *testing.T) {
	svc := services.Start(t, "--cluster-enabled", "yes")
	c := svc.NewSession(nil)
	want := []string{"k", "{k}1", "{k}2", "{k}3"}
	for _, k := range append([]string{"other", "another"}, want...) {
		services.Ask(c, "SET", k, "v")
	}
	if n := services.Ask(c, "CLUSTER", "COUNTKEYSINSLOT", "7629").Int; n != 4 {
		t.Errorf("there are %d keys in the slot", n)
	}
	texts := func(v resp.Value) (all []string) {
		for _, e := range v.Elems {
			all = append(all, e.Str)
		}
		return all
	}
	if got := texts(services.Ask(c, "CLUSTER", "GETKEYSINSLOT", "7629", "10")); !slices.Equal(got, want) {
		t.Errorf("the slot's keys are %q", got)
	}
	if got := texts(services.Ask(c, "CLUSTER", "GETKEYSINSLOT", "7629", "2")); len(got) != 2 {
		t.Errorf("two of the slot's keys are %q", got)
	}
	if got := texts(services.Ask(c, "CLUSTER", "GETKEYSINSLOT", "1", "2")); len(got) != 0 {
		t.Errorf("an empty slot has %q", got)
	}
}

// A program that works on a cluster of one works on any: keys in several slots are refused, and so are other
// databases.
func TestAClusterOfOneHasTheRulesOfMany(t *testing.T) {
	svc := services.Start(t, "--cluster-enabled", "yes")
	c := svc.NewSession(services.Quiet{})
	const cross = "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
	for _, s := range []struct{ request, want string }{
		{"MSET a 1 b 2", cross}, {"MSET {a}1 1 {a}2 2", "+OK\r\n"}, {"DEL a b c", cross}, {"WATCH a b", cross}, {"SSUBSCRIBE a b", cross},
		{"XREAD STREAMS a b 0 0", cross}, {"BLPOP a b 1", cross}, {"SORT a STORE b", cross}, {"COPY a b DB 1", cross},
		{"ZUNIONSTORE a 2 b c", cross}, {"ZUNIONSTORE a 50 b c", "-ERR syntax error\r\n"},
		{"SELECT 0", "+OK\r\n"}, {"SELECT 1", "-ERR SELECT is not allowed in cluster mode\r\n"},
		{"SELECT x", "-ERR value is not an integer or out of range\r\n"},
		{"MOVE a x", "-ERR MOVE is not allowed in cluster mode\r\n"}, {"SWAPDB x y", "-ERR SWAPDB is not allowed in cluster mode\r\n"},
		{"COPY {a} {a}b DB 1", "-ERR Copying to another database is not allowed in cluster mode\r\n"}, {"COPY {a}1 {a}b DB 0", ":1\r\n"},
		{"SORT l BY w_*", "-ERR BY option of SORT denied in Cluster mode.\r\n"},
		{"SORT_RO l GET #", "-ERR GET option of SORT denied in Cluster mode.\r\n"},
		{"SORT l BY nosort", "*0\r\n"},
		{"MULTI", "+OK\r\n"}, {"SET a 1", "+QUEUED\r\n"}, {"SET b 2", "+QUEUED\r\n"}, {"EXEC", cross}, {"GET a", "$-1\r\n"},
		{"MULTI", "+OK\r\n"}, {"MGET a b", cross}, {"EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"MULTI", "+OK\r\n"}, {"SET {b}1 1", "+QUEUED\r\n"}, {"MGET b {b}1", "+QUEUED\r\n"}, {"EXEC", "*2\r\n+OK\r\n*2\r\n$-1\r\n$1\r\n1\r\n"},
	} {
		if got := services.Exchange(c, strings.Fields(s.request)...); got != s.want {
			t.Errorf("%s replies %q, want %q", s.request, got, s.want)
		}
	}
}
