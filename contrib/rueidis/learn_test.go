package rueidisebb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestACallThatActsOnAGuessIsRefused(t *testing.T) {
	t.Parallel()
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	o := to(p)
	o.DisableRetry = true
	client, err := rueidis.NewClient(o)
	must(t, err)
	t.Cleanup(client.Close)
	c, err := rueidisebb.Wrap(client)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	p.Kill()
	drivertest.Until(t, "nothing is known", func() bool { return c.Capabilities() == ebb.Capabilities{} })
	p.Start()
	ctx := testContext(t)
	drivertest.Until(t, "the server is known", func() bool { return c.Capabilities().Server == "redis" })
	refused := 0
	for err = c.Ping(ctx); errors.Is(err, ebb.ErrUnavailable); err = c.Ping(ctx) {
		refused++
	}
	must(t, err)
	if refused < 2 {
		t.Errorf("%d calls were refused", refused)
	}
}

func TestAUserWithoutINFOFindsOutWhatTheServerIs(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	admin, ctx := open(t, p), testContext(t)
	_, err := admin.Do(ctx, "ACL", "SETUSER", "worker", "reset", "on", ">pw", "~*", "&*", "+@all", "-@dangerous")
	must(t, err)
	o := to(p)
	o.Username, o.Password = "worker", "pw"
	c, err := rueidisebb.Open(ctx, o)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	if caps := c.Capabilities(); !caps.Native || !caps.HashFieldTTL {
		t.Errorf("%+v", caps)
	}
}

func TestAContextThatEndsBetweenTwoTriesIsSaid(t *testing.T) {
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	p.Start()
	c := open(t, p)
	script := ebb.NewScript("return redis.error_reply('LOADING not now')")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := c.Script(ctx, script, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
