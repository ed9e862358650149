package embed_test

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
)

func TestAnEngineKnowsWhatExpiresSoon(t *testing.T) {
	c := open(t, "mem://")
	ctx := testContext(t)
	must(t, c.Set(ctx, "b", "1", conn.SetOptions{TTL: 2 * time.Hour}))
	must(t, c.Set(ctx, "a", "1", conn.SetOptions{TTL: time.Hour}))
	rows, whole := ebb.EngineOf(c).Soon(0, embed.SoonOptions{Count: 2})
	if len(rows) != 2 || !whole || string(rows[0].Key) != "a" || rows[0].Level != embed.LevelKey || rows[0].Item != nil ||
		string(rows[1].Key) != "b" {
		t.Errorf("whole %v, %+v", whole, rows)
	}
	if rows, whole := ebb.EngineOf(c).Soon(1, embed.SoonOptions{Count: 2}); len(rows) != 0 || !whole {
		t.Errorf("another database: whole %v, %+v", whole, rows)
	}
	if rows, whole := (*embed.Engine)(nil).Soon(0, embed.SoonOptions{}); len(rows) != 0 || whole {
		t.Errorf("a remote engine: whole %v, %+v", whole, rows)
	}
}
