package embed_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
)

// fill writes 8 MB under 800 keys, and returns the first error.
func fill(t *testing.T, c *ebb.Conn) error {
	value := strings.Repeat("v", 10_000)
	for i := range 800 {
		if err := c.Set(t.Context(), fmt.Sprint("k", i), value); err != nil {
			return err
		}
	}
	return nil
}

func TestAURLBoundsTheMemoryOfAnEngine(t *testing.T) {
	for _, url := range []string{"mem://", "file://" + filepath.ToSlash(t.TempDir())} {
		c := open(t, url+"?maxmemory=4mb&maxmemory-policy=allkeys-lru&maxmemory-samples=10")
		must(t, fill(t, c))
		if n := got[ebb.Value](t)(c.Do(t.Context(), "DBSIZE")).Int; n < 100 || n > 450 {
			t.Errorf("%s: %d of 800 keys are left, want about the half for which there is room", c, n)
		}
		if _, err := c.Get(t.Context(), "k799"); err != nil {
			t.Errorf("%s: the newest key: %v", c, err)
		}
		if s := c.String(); !strings.Contains(s, ", maxmemory=4194304, maxmemory-policy=allkeys-lru, maxmemory-samples=10)") {
			t.Error(s)
		}
	}
	c := open(t, "mem://?maxmemory=4mb") // the policy is noeviction, as in redis.conf
	if err := fill(t, c); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Errorf("an engine that evicts nothing returns %v for more data than the limit allows, want OOM", err)
	}
	if err := fill(t, open(t, "mem://")); err != nil {
		t.Errorf("an engine without a limit: %v", err)
	}
}

func TestAnOpenJoinsAnEngineOfTheSameLimits(t *testing.T) {
	open(t, "mem://bounded?maxmemory=64mb&maxmemory-protect=lock%20rules")
	for _, url := range []string{"mem://bounded", "mem://bounded/3?maxmemory=65536kb", "mem://bounded?maxmemory-protect=rules+lock"} {
		open(t, url)
	}
	for url, want := range map[string]string{
		"mem://bounded?maxmemory=32mb":                "with maxmemory=67108864",
		"mem://bounded?maxmemory-policy=volatile-ttl": "with its own maxmemory-policy",
	} {
		if _, err := ebb.Open(testContext(t), url); !errors.Is(err, ebb.ErrURL) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ErrURL and %q", url, err, want)
		}
	}
}
