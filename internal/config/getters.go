package config

import (
	"math"
	"path/filepath"
)

// The handles of the directives that the server reads for almost every command. They are
// resolved once; a getter then costs one atomic load.
var (
	hMaxMemory         = must("maxmemory").index
	hMaxMemoryPolicy   = must("maxmemory-policy").index
	hMaxMemoryClients  = must("maxmemory-clients").index
	hMaxMemoryProtect  = must("maxmemory-protect").index
	hProtectLimiters   = must("maxmemory-protect-limiters").index
	hProtoMaxBulkLen   = must("proto-max-bulk-len").index
	hQueryBufferLimit  = must("client-query-buffer-limit").index
	hOutputLimits      = must("client-output-buffer-limit").index
	hTimeout           = must("timeout").index
	hTCPKeepalive      = must("tcp-keepalive").index
	hMaxClients        = must("maxclients").index
	hProtectedMode     = must("protected-mode").index
	hRequirePass       = must("requirepass").index
	hDatabases         = must("databases").index
	hLFULogFactor      = must("lfu-log-factor").index
	hLFUDecayTime      = must("lfu-decay-time").index
	hEvents            = must("notify-keyspace-events").index
	hHashEntries       = must("hash-max-listpack-entries").index
	hHashValue         = must("hash-max-listpack-value").index
	hListSize          = must("list-max-listpack-size").index
	hSetIntset         = must("set-max-intset-entries").index
	hSetEntries        = must("set-max-listpack-entries").index
	hSetValue          = must("set-max-listpack-value").index
	hZsetEntries       = must("zset-max-listpack-entries").index
	hZsetValue         = must("zset-max-listpack-value").index
	hStreamBytes       = must("stream-node-max-bytes").index
	hStreamEntries     = must("stream-node-max-entries").index
	hSlowlogSlowerThan = must("slowlog-log-slower-than").index
	hSlowlogMaxLen     = must("slowlog-max-len").index
	hLatencyThreshold  = must("latency-monitor-threshold").index
	hAppendOnly        = must("appendonly").index
	hLatencyTracking   = must("latency-tracking").index
)

func (s *Set) num(h int) int64 { return s.cells[h].num.Load() }

// Policy is a maxmemory-policy.
type Policy uint8

// The policies, in the order the table has them.
const (
	VolatileLRU Policy = iota
	VolatileLFU
	VolatileRandom
	VolatileTTL
	AllKeysLRU
	AllKeysLFU
	AllKeysRandom
	NoEviction
)

// LFU reports whether the policy counts accesses. Other policies use the time of the last
// access.
func (p Policy) LFU() bool { return p == VolatileLFU || p == AllKeysLFU }

// MaxMemory returns the bound of the data in bytes, 0 for none.
func (s *Set) MaxMemory() int64 {
	if n := s.num(hMaxMemory); n >= 0 {
		return n
	}
	return math.MaxInt64 // a limit above 2^63 has the same effect as this one
}

// MaxMemoryPolicy returns the eviction policy at MaxMemory.
func (s *Set) MaxMemoryPolicy() Policy { return Policy(s.num(hMaxMemoryPolicy)) }

// MaxMemoryProtect returns the data that is never evicted, as a set of bits: bit i is the choice i of the directive maxmemory-protect, in
// the order of its list. Bit 0 is the choice "none", bit 1 is "lock".
func (s *Set) MaxMemoryProtect() int64 { return s.num(hMaxMemoryProtect) }

// MaxMemoryProtectLimiters returns how many bytes of limiters are protected, 0 for any
// number. A percentage is taken of MaxMemory.
func (s *Set) MaxMemoryProtectLimiters() int64 {
	n := s.num(hProtectLimiters)
	if n >= 0 {
		return n
	}
	return int64(float64(s.MaxMemory()) / 100 * float64(-n))
}

// MaxMemoryClients returns the bound of all clients' buffers in bytes, 0 for none. A
// percentage refers to MaxMemory; without a limit there, it is 0.
func (s *Set) MaxMemoryClients() int64 {
	n := s.num(hMaxMemoryClients)
	if n >= 0 {
		return n
	}
	return int64(float64(s.MaxMemory()) / 100 * float64(-n))
}

// ProtoMaxBulkLen returns the length of the longest argument, in bytes.
func (s *Set) ProtoMaxBulkLen() int64 { return s.num(hProtoMaxBulkLen) }

// ClientQueryBufferLimit bounds a client's unfinished request, in bytes.
func (s *Set) ClientQueryBufferLimit() int64 { return s.num(hQueryBufferLimit) }

// OutputLimit bounds the replies queued for a client of a class.
func (s *Set) OutputLimit(c Class) OutputLimit {
	return s.cells[hOutputLimits].val.Load().Data.([3]OutputLimit)[c]
}

// Timeout returns the seconds after which the server closes an idle client, 0 for never.
func (s *Set) Timeout() int64 { return s.num(hTimeout) }

// TCPKeepalive returns the time between probes in seconds, 0 for none.
func (s *Set) TCPKeepalive() int64 { return s.num(hTCPKeepalive) }

// MaxClients returns how many connections are served at once.
func (s *Set) MaxClients() int64 { return s.num(hMaxClients) }

// ProtectedMode reports whether the server serves loopback connections only, which it does
// as long as it has no password.
func (s *Set) ProtectedMode() bool { return s.num(hProtectedMode) != 0 }

// RequirePass returns the default user's password, "" for none.
func (s *Set) RequirePass() string { return s.cells[hRequirePass].val.Load().Text }

// Databases returns the number of databases.
func (s *Set) Databases() int { return int(s.num(hDatabases)) }

// LFULogFactor returns the factor of lfu-log-factor; with a greater one, access counters
// grow more slowly.
func (s *Set) LFULogFactor() int64 { return s.num(hLFULogFactor) }

// LFUDecayTime returns the minutes after which an access counter decreases by one.
func (s *Set) LFUDecayTime() int64 { return s.num(hLFUDecayTime) }

// Events returns the classes of keyspace notifications that are wanted.
func (s *Set) Events() EventClasses { return EventClasses(s.num(hEvents)) }

// HashMaxListpackEntries returns the most fields of a hash that is packed.
func (s *Set) HashMaxListpackEntries() int64 { return s.num(hHashEntries) }

// HashMaxListpackValue returns the longest field or value of a packed hash, in bytes.
func (s *Set) HashMaxListpackValue() int64 { return s.num(hHashValue) }

// ListMaxListpackSize bounds a list's node: elements, or if negative -1 to -5
// for 4 to 64 KiB.
func (s *Set) ListMaxListpackSize() int64 { return s.num(hListSize) }

// SetMaxIntsetEntries returns the most members of a set of integers that is an intset.
func (s *Set) SetMaxIntsetEntries() int64 { return s.num(hSetIntset) }

// SetMaxListpackEntries returns the most members of a set that is packed.
func (s *Set) SetMaxListpackEntries() int64 { return s.num(hSetEntries) }

// SetMaxListpackValue returns the longest member of a packed set, in bytes.
func (s *Set) SetMaxListpackValue() int64 { return s.num(hSetValue) }

// ZsetMaxListpackEntries returns the most members of a sorted set that is packed.
func (s *Set) ZsetMaxListpackEntries() int64 { return s.num(hZsetEntries) }

// ZsetMaxListpackValue returns the longest member of a packed sorted set, in bytes.
func (s *Set) ZsetMaxListpackValue() int64 { return s.num(hZsetValue) }

// StreamNodeMaxBytes bounds a stream's node in bytes, 0 for no bound.
func (s *Set) StreamNodeMaxBytes() int64 { return s.num(hStreamBytes) }

// StreamNodeMaxEntries bounds a stream's node in entries, 0 for no bound.
func (s *Set) StreamNodeMaxEntries() int64 { return s.num(hStreamEntries) }

// SlowlogLogSlowerThan returns the microseconds from which a command is slow, -1 for
// never.
func (s *Set) SlowlogLogSlowerThan() int64 { return s.num(hSlowlogSlowerThan) }

// SlowlogMaxLen returns how many slow commands are kept.
func (s *Set) SlowlogMaxLen() int64 { return s.num(hSlowlogMaxLen) }

// LatencyMonitorThreshold returns the milliseconds from which an event is stored, 0 for
// never.
func (s *Set) LatencyMonitorThreshold() int64 { return s.num(hLatencyThreshold) }

// LatencyTracking reports whether the server keeps a histogram of latencies per command.
func (s *Set) LatencyTracking() bool { return s.num(hLatencyTracking) != 0 }

// Bool, Int, String and Value read any directive by its name or alias; they panic for an
// unknown name, which is a mistake of the program. They cost a map lookup.
func (s *Set) Bool(name string) bool { return s.num(must(name).index) != 0 }

// Int returns the number of a directive; see Value.Num.
func (s *Set) Int(name string) int64 { return s.num(must(name).index) }

// String returns the value as CONFIG GET prints it.
func (s *Set) String(name string) string { return s.text(must(name)) }

// File returns the path that a directive names, "" for none: a relative one is in dir, as
// in Redis, which changes to that directory.
func (s *Set) File(name string) string {
	path := s.String(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.String("dir"), path)
}

// Value returns the value of a directive.
func (s *Set) Value(name string) Value { return s.load(must(name)) }

// Bind returns the addresses to listen on; an address with a "-" before it is optional.
// The slice is shared: do not change it.
func (s *Set) Bind() []string { list, _ := s.Value("bind").Data.([]string); return list }

// Save returns the snapshot schedule. The slice is shared: do not change it.
func (s *Set) Save() []SavePoint { list, _ := s.Value("save").Data.([]SavePoint); return list }

// LatencyPercentiles returns the percentiles that INFO shows. The slice is shared: do not
// change it.
func (s *Set) LatencyPercentiles() []float64 {
	list, _ := s.Value("latency-tracking-info-percentiles").Data.([]float64)
	return list
}

// Allows reports whether an enable-... directive lets a client through: all of
// them, none, or only those on a loopback connection or a unix socket.
func (s *Set) Allows(name string, local bool) bool {
	switch s.String(name) {
	case "yes":
		return true
	case "local":
		return local
	}
	return false
}
