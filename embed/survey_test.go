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
