// Package settings translates directives into the values that the engine and the server work with. It applies nothing: package
// session does, when a service starts and after CONFIG SET. Start reading at Layout.
package settings

import (
	"log/slog"
	"math"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
)

// LayoutDirectives are the directives that Layout reads.
var LayoutDirectives = []string{
	"hash-max-listpack-entries", "hash-max-listpack-value", "set-max-intset-entries", "set-max-listpack-entries", "set-max-listpack-value",
	"zset-max-listpack-entries", "zset-max-listpack-value", "list-max-listpack-size", "stream-node-max-bytes",
	"stream-node-max-entries", "hll-sparse-max-bytes",
}

// Layout returns the sizes from which on containers have their large forms.
func Layout(c *config.Set) engine.Layout {
	clip := func(n int64) int { return int(min(n, math.MaxInt32)) }
	return engine.Layout{
		HashEntries: clip(c.HashMaxListpackEntries()), HashValue: clip(c.HashMaxListpackValue()),
		SetIntegers: clip(c.SetMaxIntsetEntries()), SetEntries: clip(c.SetMaxListpackEntries()), SetValue: clip(c.SetMaxListpackValue()),
		ZSetEntries: clip(c.ZsetMaxListpackEntries()), ZSetValue: clip(c.ZsetMaxListpackValue()),
		ListSize:    clip(c.ListMaxListpackSize()),
		StreamBytes: clip(c.StreamNodeMaxBytes()), StreamEntries: clip(c.StreamNodeMaxEntries()),
		HyperLogLogSparse: clip(c.Value("hll-sparse-max-bytes").Num),
	}
}

// evictions maps each maxmemory-policy to the keys that it evicts.
var evictions = [...]engine.Eviction{
	config.VolatileLRU:    {Keys: engine.EvictVolatile, By: engine.ByRecency},
	config.VolatileLFU:    {Keys: engine.EvictVolatile, By: engine.ByFrequency},
	config.VolatileRandom: {Keys: engine.EvictVolatile, By: engine.ByChance},
	config.VolatileTTL:    {Keys: engine.EvictVolatile, By: engine.ByDeadline},
	config.AllKeysLRU:     {Keys: engine.EvictAll, By: engine.ByRecency},
	config.AllKeysLFU:     {Keys: engine.EvictAll, By: engine.ByFrequency},
	config.AllKeysRandom:  {Keys: engine.EvictAll, By: engine.ByChance},
	config.NoEviction:     {},
}

// Eviction returns which keys the policy evicts, and what it protects.
func Eviction(c *config.Set) engine.Eviction {
	e := evictions[c.MaxMemoryPolicy()]
	e.Samples = int(min(c.Int("maxmemory-samples"), 64))
	e.Unprotected = engine.ProtectAll &^ engine.Protected(c.MaxMemoryProtect()>>1)
	e.Limiters = c.MaxMemoryProtectLimiters()
	return e
}

// Tenacity returns the longest time that one command may evict: 500 us at the default of 10, 15 %
// more with each step, without limit at 100, as in Redis.
func Tenacity(c *config.Set) time.Duration {
	n := c.Int("maxmemory-eviction-tenacity")
	switch {
	case n <= 10:
		return time.Duration(n) * 50 * time.Microsecond
	case n < 100:
		return time.Duration(500*math.Pow(1.15, float64(n-10))) * time.Microsecond
	}
	return math.MaxInt64 / 4
}

// LeastClientLimit is the smallest limit of maxmemory-clients, in bytes, as in Redis. With a
// smaller one the server would close every connection, and with it the one that could set another
// limit.
const LeastClientLimit = 128 << 10

// ClientLimit returns the number of bytes that all clients may take up together; 0: no limit.
func ClientLimit(c *config.Set) int64 {
	if n := c.MaxMemoryClients(); n > 0 && n != math.MaxInt64 {
		return max(n, LeastClientLimit)
	}
	return 0
}

// logNothing is a level above every level of a log line.
const logNothing = slog.Level(100)

// LogLevel returns the least level of the lines that the directive loglevel wants.
func LogLevel(c *config.Set) slog.Level {
	switch c.String("loglevel") {
	case "debug", "verbose":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "nothing":
		return logNothing
	}
	return slog.LevelInfo
}

// Events translates the classes of notify-keyspace-events.
func Events(e config.EventClasses) (classes uint32) {
	for _, c := range []struct {
		from config.EventClasses
		to   uint32
	}{
		{config.EventKeyspace, engine.EventKeyspace}, {config.EventKeyevent, engine.EventKeyevent},
		{config.EventGeneric, engine.EventGeneric}, {config.EventString, engine.EventString},
		{config.EventList, engine.EventList}, {config.EventSet, engine.EventSet},
		{config.EventHash, engine.EventHash}, {config.EventZset, engine.EventZSet},
		{config.EventExpired, engine.EventExpired}, {config.EventEvicted, engine.EventEvicted},
		{config.EventStream, engine.EventStream}, {config.EventModule, engine.EventModule},
		{config.EventNew, engine.EventNew}, {config.EventKeyMiss, engine.EventMiss},
	} {
		if e&c.from != 0 {
			classes |= c.to
		}
	}
	return classes
}
