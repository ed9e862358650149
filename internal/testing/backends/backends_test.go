package backends

import (
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestEachKindKeepsAndForgets(t *testing.T) {
	Each(t, func(t *testing.T, b *Backend) {
		ctx, key, stays := b.Context(), b.Name("k"), b.Name("stays")
		for k, ttl := range map[string]time.Duration{key: 30 * time.Millisecond, stays: time.Minute} {
			if err := b.SetTTL(ctx, k, "v", ttl); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := b.Open().Exists(ctx, stays); n != 1 || err != nil {
			t.Error(n, err)
		}
		b.Pass(40 * time.Millisecond)
		if n, err := b.Exists(ctx, key); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestDataOutlivesAFault(t *testing.T) {
	Each(t, func(t *testing.T, b *Backend) {
		ctx, key := b.Context(), b.Name("k")
		if err := b.SetTTL(ctx, key, "v", time.Minute); err != nil {
			t.Fatal(err)
		}
		if !b.Fault() {
			return
		}
		b.Until("the backend is there again", func() bool {
			n, err := b.Exists(ctx, key)
			return n == 1 && err == nil
		})
	})
}

// A master that is parted from the others is replaced, knows it when it is back, and
// keeps nothing of what it was told meanwhile.
func TestAPartedMasterIsReplaced(t *testing.T) {
	c := NewPartableCluster(t)
	ctx, slot := t.Context(), c.Slot("k")
	old := c.Master(slot)
	replicated(t, c.nodes[old].admin, "{k}:before")
	c.Part(old)
	c.ask(ctx, old, "SET", "k", "alone") // refused once it knows that it is alone
	c.until("another has its slots", func() bool { now := c.Master(slot); return now >= 0 && now != old })
	c.until("it serves them", func() bool {
		now := c.Master(slot)
		return now >= 0 && c.ask(ctx, now, "SET", "k", "together") == "OK"
	})
	c.Join()
	c.Repair()
	if now := c.Master(slot); now == old || c.ask(ctx, now, "GET", "k") != "together" {
		t.Errorf("node %d, which was %d, has %q", now, old, c.ask(ctx, now, "GET", "k"))
	}
}
