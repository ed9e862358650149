package rueidisebb_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/resp"
)

// while counts on a view while something happens, and until calls go on after it.
func while(t *testing.T, view *ebb.Conn, key string, happens func()) {
	n := drivertest.NewTally(t, view, key)
	defer n.Stop()
	n.Start(4)
	n.More(100)
	happens()
	n.More(100)
	n.Verify()
}

func TestSentinelFailoverLosesNothingThatIsReplicated(t *testing.T) {
	t.Parallel()
	group := backends.NewGroup(t)
	c := openGroup(t, group)
	drivertest.View(t, c.Replicated(1, 20*time.Second))
	view := c.Replicated(1, time.Second)
	while(t, view, "n", func() {
		before := group.Master()
		group.KillMaster()
		drivertest.Until(t, "the replica is the master", func() bool { m := group.Master(); return m >= 0 && m != before })
		group.Repair() // or there is no replica to wait for
	})
}

// openGroup returns a Conn that follows the Sentinels of a group.
func openGroup(t *testing.T, group *backends.Group) *ebb.Conn {
	t.Helper()
	u, err := url.Parse(group.URL())
	must(t, err)
	c, err := rueidisebb.Open(testContext(t), rueidis.ClientOption{
		InitAddress: strings.Split(u.Host, ","),
		Sentinel:    rueidis.SentinelOption{MasterSet: strings.Trim(u.Path, "/")},
	})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestASubscriptionFollowsAFailoverThatTheOldMasterOutlives(t *testing.T) {
	t.Parallel()
	group := backends.NewGroup(t)
	c, ctx := openGroup(t, group), testContext(t)
	s, err := c.Subscribe(ctx, "news")
	must(t, err)
	defer func() { must(t, s.Close()) }()
	old := group.FailOver()
	for n := range 2 { // when it ends, and when there is a new one
		if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrInterrupted) {
			t.Fatalf("%v at call %d, want ErrInterrupted", err, n)
		}
	}
	// Sentinel makes the old master a replica after eight seconds, and then closes its connections.
	if v, err := old.Do(ctx, "ROLE"); err != nil || v.Elems[0].Str != "master" {
		t.Errorf("the old master is %v, %v: it has closed the connection", v, err)
	}
	_, err = c.Do(ctx, "PUBLISH", "news", "x")
	must(t, err)
	if m, err := s.Next(ctx); err != nil || m.Payload != "x" {
		t.Errorf("%v, %v", m, err)
	}
}

func TestAWriteThatNoReplicaHasIsToldApart(t *testing.T) {
	t.Parallel()
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	drivertest.NotReplicated(t, open(t, p))
}

func TestAServerThatIsNotReadyIsUnavailable(t *testing.T) {
	t.Parallel()
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	c, ctx := open(t, p), testContext(t)
	for _, code := range []string{"LOADING", "READONLY", "CLUSTERDOWN"} {
		_, err := c.Script(ctx, ebb.NewScript("return redis.error_reply(ARGV[1] .. ' not now')"), nil, code)
		var refused ebb.ReplyError
		if !errors.Is(err, ebb.ErrUnavailable) || !errors.As(err, &refused) || refused.Code() != code {
			t.Errorf("%v, want ErrUnavailable and %s", err, code)
		}
	}
}

func TestRepliesHaveTheirTypes(t *testing.T) {
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	c, ctx := open(t, p), testContext(t)
	for lua, want := range map[string]ebb.Value{
		"return {big_number='12345678901234567890'}":               {Kind: resp.KindBigNumber, Str: "12345678901234567890"},
		"return {big_number='-1'}":                                 {Kind: resp.KindBigNumber, Str: "-1"},
		"return {verbatim_string={format='mkd', string='# a: b'}}": {Kind: resp.KindVerbatim, Format: [3]byte{'m', 'k', 'd'}, Str: "# a: b"},
		"return {double=1.5}":                                      {Kind: resp.KindDouble, Float: 1.5},
		"redis.setresp(3) return true":                             {Kind: resp.KindBool, Int: 1},
		"return redis.error_reply('ERR Upper CASE')":               {Kind: resp.KindError, Str: "ERR Upper CASE"},
		"return redis.error_reply('ERR ODD')":                      {Kind: resp.KindError, Str: "ERR ODD"},
	} {
		v, err := c.Script(ctx, ebb.NewScript(lua), nil)
		if v.Kind != want.Kind || v.Str != want.Str || v.Int != want.Int || v.Float != want.Float || v.Format != want.Format ||
			(err != nil) != (want.Kind == resp.KindError) {
			t.Errorf("%s: %+v, %v", lua, v, err)
		}
	}
}

// wideCommands concern all masters of a cluster; a Watch one of them.
func wideCommands(t *testing.T, c *ebb.Conn) {
	drivertest.Wide(t, c)
	ctx := testContext(t)
	err := c.Watch(ctx, func(w *ebb.Watched) error {
		_, err := w.Do(ctx, "GET", "wide1")
		return err
	}, "wide0")
	if !errors.Is(err, ebb.ErrArgument) {
		t.Errorf("a read of another slot in a Watch: %v", err)
	}
}

// replicatedInACluster outlives the loss of a master.
func replicatedInACluster(t *testing.T, c *ebb.Conn, cluster *backends.Cluster) {
	drivertest.View(t, c.Replicated(1, 20*time.Second))
	view := c.Replicated(1, time.Second)
	ctx := testContext(t)
	var b ebb.Batch
	for i := range 20 {
		b.Do("SET", fmt.Sprint("key", i), i)
	}
	if vs, err := view.Pipeline(ctx, &b); err != nil || len(vs) != 20 {
		t.Errorf("%v, %v", vs, err)
	}
	if _, err := view.Do(ctx, "FLUSHALL"); err != nil {
		t.Errorf("FLUSHALL: %v", err)
	}
	while(t, view, "{moving}n", func() {
		slot := cluster.Slot("{moving}n")
		for _, to := range cluster.Masters() {
			if to != cluster.Master(slot) {
				must(t, cluster.MoveSlot(slot, to))
				break
			}
		}
	})
	while(t, view, "{dying}n", func() {
		cluster.KillMaster("{dying}n")
		cluster.Repair()
	})
}
