package embed_test

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
)

func TestAnEngineSurveysItsDeadlines(t *testing.T) {
	c := open(t, "mem://")
	ctx := testContext(t)
	must(t, c.Set(ctx, "a", "1", conn.SetOptions{TTL: 30 * time.Minute}))
	must(t, c.Set(ctx, "b", "1", conn.SetOptions{TTL: 40 * 24 * time.Hour}))
	v := ebb.EngineOf(c).Survey()
	if v.Keys.Hours[0] != 1 || v.Keys.Days[0] != 1 || v.Keys.Later != 1 || v.Keys.Due != 0 {
		t.Errorf("%+v", v.Keys)
	}
	if (*embed.Engine)(nil).Survey() != nil {
		t.Error("a remote engine has a survey")
	}
}

func TestAnEngineKnowsTheLimitersThatDeny(t *testing.T) {
	c := open(t, "mem://")
	ctx := testContext(t)
	for range 3 {
		_, err := c.Do(ctx, "RL.TAKE", "ann", 1, 60000)
		must(t, err)
	}
	if rows := ebb.EngineOf(c).Top(0, 10); len(rows) != 1 || string(rows[0].Key) != "ann" || rows[0].Denied != 2 {
		t.Errorf("%+v", rows)
	}
	if (*embed.Engine)(nil).Top(0, 10) != nil {
		t.Error("a remote engine has denials")
	}
}
