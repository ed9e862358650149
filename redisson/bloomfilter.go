package redisson

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// BloomFilter is Redisson's RBloomFilter: a bitmap, the key itself, and a hash {name}:config
// with size, hashIterations, expectedInsertions and falseProbability. It does not grow. With
// Redisson's StringCodec the values are strings. The methods are safe for concurrent use.
type BloomFilter[T any] struct {
	c     *conn.Conn
	name  string
	codec conn.Codec[T]
}

// NewBloomFilter returns the filter of that name. It sends nothing to the backend. Errors:
// ebb.ErrArgument.
func NewBloomFilter[T any](c *conn.Conn, name string, opts ...BloomFilterOptions[T]) (*BloomFilter[T], error) {
	name, o, err := kit.Make(c, "redisson: bloom filter", name, opts)
	if err != nil {
		return nil, err
	}
	if o.Codec, err = kit.Codec(o.Codec, "Codec"); err != nil {
		return nil, fmt.Errorf("redisson: bloom filter %q: %w", name, err)
	}
	return &BloomFilter[T]{c: c, name: name, codec: o.Codec}, nil
}

// BloomFilterOptions configures a BloomFilter. The zero value works.
type BloomFilterOptions[T any] struct {
	// Codec encodes values as the Java program's codec does; nil: ebb.CodecOf, which for strings
	// equals Redisson's StringCodec.
	Codec conn.Codec[T]
}

// highwayKey is the key of the hash, four words, little endian.
var highwayKey = func() []byte {
	var b []byte
	for _, w := range []uint64{0x9e3779b97f4a7c15, 0xf39cc0605cedc834, 0x1082276bf3a27251, 0xf86c6a11d0c18e95} {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}()

// BloomFilterConfig is the configuration of a BloomFilter.
type BloomFilterConfig struct {
	Size               int64 // bits
	HashIterations     int   // bits for each value
	ExpectedInsertions int64
	FalseProbability   float64
}

// configFor works out size and iterations:
// m = floor(-n ln p / (ln 2)^2), k = max(1, round(m/n ln 2)).
func configFor(n int64, p float64) BloomFilterConfig {
	m := int64(-float64(n) * math.Log(p) / (math.Ln2 * math.Ln2))
	k := max(1, int(math.Floor(float64(m)/float64(n)*math.Ln2+0.5)))
	return BloomFilterConfig{m, k, n, p}
}

// places are the bits of a value: h = h1; each is h without its sign, modulo the
// size; then h grows by h2 after an even one, and by h1 after an odd one.
func (c BloomFilterConfig) places(data []byte) []any {
	sum := highwayhash.Sum128(data, highwayKey)
	h1, h2 := binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:])
	all := make([]any, c.HashIterations)
	h := h1
	for i := range all {
		all[i] = int64((h & math.MaxInt64) % uint64(c.Size))
		if i%2 == 0 {
			h += h2
		} else {
			h += h1
		}
	}
	return all
}

// maxPlaces is the approximate number of places that a script gets: to read some thousand bits takes a millisecond or two.
const maxPlaces = 4000

// bloomInit makes the configuration unless there is one.
var bloomInit = conn.NewScript(`
if redis.call('HEXISTS', KEYS[1], 'size') == 1 then return 0 end
redis.call('HSET', KEYS[1], 'size', ARGV[1], 'hashIterations', ARGV[2], 'expectedInsertions', ARGV[3], 'falseProbability', ARGV[4])
return 1
`)

// The others take size and iterations, and say 'config' if they are not those of
// the filter; then for each value its places.
const bloomCheck = `
local have = redis.call('HMGET', KEYS[2], 'size', 'hashIterations')
if tonumber(have[1] or '') ~= tonumber(ARGV[1]) or tonumber(have[2] or '') ~= tonumber(ARGV[2]) then return 'config' end
local k, out = tonumber(ARGV[2]), {}
for at = 3, #ARGV, k do
	local yes = OUT
	for i = at, at + k - 1 do
		if redis.call(COMMAND) == 0 then yes = 1 - OUT BREAK end
	end
	out[#out + 1] = yes
end
return out
`

// bloomAdd replies 1 for each value that set a bit, bloomHas 1 for each whose
// bits are all set.
var (
	bloomAdd = conn.NewScript(strings.NewReplacer("OUT", "0", "COMMAND", "'SETBIT', KEYS[1], ARGV[i], 1", "BREAK", "").Replace(bloomCheck))
	bloomHas = conn.NewScript(strings.NewReplacer("OUT", "1", "COMMAND", "'GETBIT', KEYS[1], ARGV[i]", "BREAK", "break").Replace(bloomCheck))
)

// TryInit makes the filter for n values and a share p of false positives, and reports whether
// it did: a filter that exists stays as it is. Errors: ebb.ErrArgument.
func (f *BloomFilter[T]) TryInit(ctx context.Context, n int64, p float64) (bool, error) {
	if n < 1 || !(p > 0 && p < 1) {
		return false, f.failed("init", fmt.Errorf("%w: %d values at %v: at least one, and a probability between 0 and 1", conn.ErrArgument, n, p))
	}
	cfg := configFor(n, p)
	if cfg.Size < 1 || cfg.Size > 2*math.MaxInt32 {
		return false, f.failed("init", fmt.Errorf("%w: %d bits: Redisson has from 1 to %d", conn.ErrArgument, cfg.Size, 2*math.MaxInt32))
	}
	r, err := f.c.Script(ctx, bloomInit, []string{f.config()}, cfg.Size, cfg.HashIterations, n, javaDouble(p))
	if err != nil {
		return false, f.failed("init", err)
	}
	return r.AsBool()
}

// Config returns the filter's configuration. Errors: ErrConfig, ebb.ErrValue.
func (f *BloomFilter[T]) Config(ctx context.Context) (c BloomFilterConfig, err error) {
	r, err := f.c.Do(ctx, "HMGET", f.config(), "size", "hashIterations", "expectedInsertions", "falseProbability")
	if err != nil {
		return c, f.failed("config", err)
	}
	if len(r.Elems) != 4 || r.Elems[0].IsNull() {
		return c, f.failed("config", ErrConfig)
	}
	k, err1 := r.Elems[1].AsInt()
	size, err2 := r.Elems[0].AsInt()
	n, err3 := r.Elems[2].AsInt()
	p, err4 := r.Elems[3].AsFloat()
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil || size < 1 || k < 1 || k > 1000 {
			return c, f.failed("config", fmt.Errorf("%w: %s", conn.ErrValue, r))
		}
	}
	return BloomFilterConfig{size, int(k), n, p}, nil
}

// Add adds a value, and reports whether it was new. Errors: ErrConfig.
func (f *BloomFilter[T]) Add(ctx context.Context, v T) (bool, error) {
	all, err := f.AddMany(ctx, v)
	return len(all) == 1 && all[0], err
}

// AddMany adds values, and reports for each whether it was new. Errors: ErrConfig.
func (f *BloomFilter[T]) AddMany(ctx context.Context, values ...T) ([]bool, error) {
	return f.run(ctx, "add", bloomAdd, f.c.Script, values)
}

// Contains reports whether a value was added: false is certain, true may be a false positive.
// Errors: ErrConfig.
func (f *BloomFilter[T]) Contains(ctx context.Context, v T) (bool, error) {
	all, err := f.ContainsMany(ctx, v)
	return len(all) == 1 && all[0], err
}

// ContainsMany does the work of Contains for several values. Errors: ErrConfig.
func (f *BloomFilter[T]) ContainsMany(ctx context.Context, values ...T) ([]bool, error) {
	return f.run(ctx, "contains", bloomHas, f.c.ScriptRO, values)
}

// runner is Conn.Script or Conn.ScriptRO.
type runner func(ctx context.Context, s *conn.Script, keys []string, args ...any) (conn.Value, error)

// run asks for the configuration, and runs a script for some values at a time.
func (f *BloomFilter[T]) run(ctx context.Context, doing string, s *conn.Script, run runner, values []T) (found []bool, err error) {
	if len(values) == 0 {
		return nil, nil
	}
	cfg, err := f.Config(ctx)
	if err != nil {
		return nil, err
	}
	for len(values) > 0 {
		n := min(len(values), max(1, maxPlaces/cfg.HashIterations))
		args := []any{cfg.Size, cfg.HashIterations}
		for _, v := range values[:n] {
			data, err := f.codec.Encode(v)
			if err != nil {
				return found, f.failed(doing, err)
			}
			args = append(args, cfg.places(data)...)
		}
		r, err := run(ctx, s, []string{f.name, f.config()}, args...)
		if err != nil {
			return found, f.failed(doing, err)
		}
		if len(r.Elems) != n { // it was deleted, or made again
			if cfg, err = f.Config(ctx); err != nil {
				return found, err
			}
			continue
		}
		for _, e := range r.Elems {
			found = append(found, e.Int == 1)
		}
		values = values[n:]
	}
	return found, nil
}

// Count estimates the number of values from the share of bits that are set: -m/k ln(1 - X/m).
// Errors: ErrConfig.
func (f *BloomFilter[T]) Count(ctx context.Context) (int64, error) {
	cfg, err := f.Config(ctx)
	if err != nil {
		return 0, err
	}
	r, err := f.c.Do(ctx, "BITCOUNT", f.name)
	if err != nil {
		return 0, f.failed("count", err)
	}
	m := float64(cfg.Size)
	if float64(r.Int) >= m {
		return cfg.Size, nil
	}
	return int64(math.Round(-m / float64(cfg.HashIterations) * math.Log1p(-float64(r.Int)/m))), nil
}

// Delete deletes the filter and its configuration.
func (f *BloomFilter[T]) Delete(ctx context.Context) error {
	if _, err := f.c.Del(ctx, f.name, f.config()); err != nil {
		return f.failed("delete", err)
	}
	return nil
}

func (f *BloomFilter[T]) config() string { return kit.Key(f.name, "config") }

// String describes the filter.
func (f *BloomFilter[T]) String() string {
	return fmt.Sprintf("bloom filter %q (Redisson's layout; Lua scripts on bitmaps)", f.name)
}

func (f *BloomFilter[T]) failed(doing string, err error) error {
	return fmt.Errorf("redisson: bloom filter %q: %s: %w", f.name, doing, err)
}

// javaDouble writes a number as Java does: 0.03, 1.0E-4.
func javaDouble(p float64) string {
	if p >= 1e-3 && p < 1e7 {
		s := strconv.FormatFloat(p, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(p, 'e', -1, 64), "e")
	if !strings.Contains(digits, ".") {
		digits += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return digits + "E" + strconv.Itoa(n)
}
