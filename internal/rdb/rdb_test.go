package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func TestPayloadsOfRealServersAreRead(t *testing.T) {
	for _, s := range samples(t, "*") {
		r, err := decode(s.Dump)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if s.Kind == "zset" {
			for i := 1; i < len(s.Want); i += 2 {
				f, _ := strconv.ParseFloat(s.Want[i], 64)
				s.Want[i] = score64(f)
			}
		}
		if s.Dump[0] == byte(TypeStream2) {
			s.Want = activeWhenSeen(s.Want)
		}
		if got := r.flat(); r.kind != s.Kind || !slices.Equal(got, s.Want) {
			t.Errorf("%s: a %s\n got %q\nwant %q", s, r.kind, got, s.Want)
		}
	}
}

// reencode decodes a payload and writes what it holds.
func reencode(t *rapid.T, e *Encoder, r *recorder) []byte {
	e.Reset(nil)
	return Seal(encodeRecorder(t, e, r), e.Version())
}

// encodeRecorder appends what a recorder holds to e.Buf, and returns that.
func encodeRecorder(t interface{ Fatalf(string, ...any) }, e *Encoder, r *recorder) []byte {
	switch r.kind {
	case "string":
		e.String([]byte(r.parts[0][0]))
	case "list":
		e.BeginList()
		for _, p := range r.parts {
			e.Element([]byte(p[0]))
		}
		e.EndList()
	case "set":
		e.BeginSet(len(r.parts))
		for _, p := range r.parts {
			e.Member([]byte(p[0]))
		}
		e.EndSet()
	case "zset":
		r.flat()
		e.BeginZSet(len(r.parts))
		for _, p := range r.parts {
			f, _ := strconv.ParseFloat(p[1], 64)
			e.Scored([]byte(p[0]), f)
		}
		e.EndZSet()
	case "hash":
		var earliest int64
		for _, p := range r.parts {
			if ms, _ := strconv.ParseInt(p[2], 10, 64); ms != 0 && (earliest == 0 || ms < earliest) {
				earliest = ms
			}
		}
		e.BeginHash(len(r.parts), earliest)
		for _, p := range r.parts {
			ms, _ := strconv.ParseInt(p[2], 10, 64)
			e.Field([]byte(p[0]), []byte(p[1]), ms)
		}
		e.EndHash()
	default:
		t.Fatalf("no kind %q", r.kind)
	}
	return e.Buf
}

func drawString(t *rapid.T, label string) string {
	switch rapid.IntRange(0, 4).Draw(t, label+"-kind") {
	case 0:
		return strconv.FormatInt(rapid.Int64().Draw(t, label), 10)
	case 1:
		return strconv.Itoa(rapid.IntRange(-300, 300).Draw(t, label))
	case 2:
		return string(bytes.Repeat([]byte(rapid.StringN(1, 5, 8).Draw(t, label)),
			rapid.SampledFrom([]int{1, 20, 100, 3000}).Draw(t, label+"-times")))
	}
	return string(rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, label))
}

func drawValue(t *rapid.T) *recorder {
	r := &recorder{kind: rapid.SampledFrom([]string{"string", "list", "set", "zset", "hash"}).Draw(t, "type")}
	r.sorted = r.kind == "set" || r.kind == "hash"
	n := rapid.SampledFrom([]int{1, 2, 10, 127, 128, 129, 513}).Draw(t, "n")
	if r.kind == "string" {
		n = 1
	}
	keys := map[string]bool{}
	ints := rapid.Bool().Draw(t, "ints")
	timed := rapid.Bool().Draw(t, "timed")
	for i := range n {
		s := strconv.Itoa(i)
		if !ints {
			s = drawString(t, "s")
		}
		if keys[s] && r.kind != "list" {
			continue
		}
		keys[s] = true
		switch r.kind {
		case "zset":
			f := rapid.OneOf(rapid.Float64(),
				rapid.SampledFrom([]float64{0, 1, -1, math.Inf(1), math.Inf(-1), 1 << 53, -1.5, math.Copysign(0, -1)})).Draw(t, "score")
			_ = r.add(s, score64(f))
		case "hash":
			ms := int64(0)
			if timed {
				ms = rapid.SampledFrom([]int64{0, 1, 1_700_000_000_000, 1_900_000_000_000, maxDeadline}).Draw(t, "deadline")
			}
			_ = r.add(s, drawString(t, "value"), strconv.FormatInt(ms, 10))
		default:
			_ = r.add(s)
		}
	}
	return r
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	var e Encoder
	draw.Check(t, func(t *rapid.T) {
		want := drawValue(t)
		e.Compress = rapid.Bool().Draw(t, "compress")
		payload := reencode(t, &e, want)
		got, err := decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		if got.kind != want.kind || !slices.Equal(got.flat(), want.flat()) {
			t.Fatalf("got  %q\nwant %q", got.flat(), want.flat())
		}
		if n := len(got.parts); got.n != 0 && got.n != n {
			t.Fatalf("%d elements were announced, %d came", got.n, n)
		}
	})
}

// A plain Encoder writes deadlines of hash fields in the form of the servers that are to read it.
func TestFieldsOfPlainFilesAreReadBack(t *testing.T) {
	want := []string{"f=1800000000000", "g=0", "h=33177117420123"}
	for form, fields := range map[FieldForm][]string{NoFields: {"f=0", "g=0", "h=0"}, RedisFields: want, ValkeyFields: want} {
		e := Encoder{Plain: true, Fields: form}
		e.BeginHash(3, 1_800_000_000_000)
		e.Field([]byte("f"), []byte("1"), 1_800_000_000_000)
		e.Field([]byte("g"), []byte("2"), 0)
		e.Field([]byte("h"), []byte("3"), 33_177_117_420_123)
		e.EndHash()
		r := &recorder{}
		var d Decoder
		if err := d.Restore(e.Buf, form.Version(), r); err != nil {
			t.Fatalf("form %d: %v", form, err)
		}
		var got []string
		for _, p := range r.parts {
			got = append(got, p[0]+"="+p[2])
		}
		slices.Sort(got)
		if !slices.Equal(got, fields) {
			t.Errorf("form %d: %q, want %q", form, got, fields)
		}
	}
	if h := string(appendHeader(nil, ValkeyFields.Version())) + string(appendHeader(nil, RedisFields.Version())); h != "VALKEY080REDIS0012" {
		t.Errorf("the headers are %q", h)
	}
}

func TestStreamsAreReadBack(t *testing.T) {
	for _, s := range samples(t, "*") {
		if s.Kind != "stream" {
			continue
		}
		value, version, _ := Open(s.Dump)
		c := &streamCopier{}
		c.e.Reset(nil)
		var d Decoder
		if err := d.Restore(value, version, c); err != nil {
			t.Fatal(err)
		}
		c.flush()
		got, err := decode(Seal(c.e.Buf, c.e.Version()))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		want, _ := decode(s.Dump)
		// The time of activity has no place in type 19.
		if !slices.Equal(activeWhenSeen(got.flat()), activeWhenSeen(want.flat())) {
			t.Errorf("%s:\n got %q\nwant %q", s, got.flat(), want.flat())
		}
	}
}

// activeWhenSeen makes consumers active when they were last seen.
func activeWhenSeen(lines []string) []string {
	for i, l := range lines {
		if f := strings.Fields(l); len(f) == 4 && f[0] == "consumer" {
			f[3] = f[2]
			lines[i] = strings.Join(f, " ")
		}
	}
	return lines
}

// streamCopier writes a stream as it reads it.
type streamCopier struct {
	recorder
	e      Encoder
	info   StreamInfo
	groups []group
}

type group struct {
	Group
	consumers []consumer
}

type consumer struct {
	Consumer
	pel []Pending
}

func (c *streamCopier) BeginStream(int) error                   { c.e.BeginStream(); return nil }
func (c *streamCopier) Entry(id StreamID, pairs [][]byte) error { c.e.Entry(id, pairs); return nil }
func (c *streamCopier) EndEntries(s StreamInfo) error           { c.info = s; return nil }
func (c *streamCopier) last() *group                            { return &c.groups[len(c.groups)-1] }
func (g *group) last() *consumer                                { return &g.consumers[len(g.consumers)-1] }
func (c *streamCopier) Group(g Group) error {
	g.Name = bytes.Clone(g.Name)
	c.groups = append(c.groups, group{Group: g})
	return nil
}

func (c *streamCopier) Consumer(x Consumer) error {
	x.Name = bytes.Clone(x.Name)
	g := c.last()
	g.consumers = append(g.consumers, consumer{Consumer: x})
	return nil
}

func (c *streamCopier) Pending(p Pending) error {
	x := c.last().last()
	x.pel = append(x.pel, p)
	return nil
}

func (c *streamCopier) flush() {
	c.e.EndEntries(c.info, len(c.groups))
	for _, g := range c.groups {
		var pel []Pending
		for _, x := range g.consumers {
			pel = append(pel, x.pel...)
		}
		slices.SortFunc(pel, func(a, b Pending) int {
			if a.ID.Less(b.ID) {
				return -1
			}
			return 1
		})
		c.e.Group(g.Group)
		for _, p := range pel {
			c.e.Pending(p)
		}
		c.e.Consumers(len(g.consumers))
		for _, x := range g.consumers {
			c.e.Consumer(x.Consumer)
			for _, p := range x.pel {
				c.e.Owned(p.ID)
			}
		}
	}
}

func TestTheFooterIsChecked(t *testing.T) {
	p := Seal([]byte{0, 1, 'a'}, PlainVersion)
	if _, version, err := Open(p); err != nil || version != PlainVersion {
		t.Fatal(version, err)
	}
	for _, bad := range [][]byte{nil, p[:9], p[:len(p)-1], append([]byte{1}, p[1:]...)} {
		if _, _, err := Open(bad); err != ErrFooter {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// What a newer version of Redis, or Valkey 9, has sealed is taken, and what goes on to
	// those that are older says an older version.
	for _, version := range []int{Version + 1, valkeyVersion - 1, valkeyVersion, valkeyNewest} {
		p := Seal([]byte{0, 1, 'a'}, version)
		if _, v, err := Open(p); err != nil || v != version {
			t.Errorf("version %d: %d, %v", version, v, err)
		}
		if value, v, err := Open(Reseal(p, PlainVersion)); err != nil || v != PlainVersion || string(value) != "\x00\x01a" {
			t.Errorf("resealed, version %d: %q in %d, %v", version, value, v, err)
		}
	}
	if older := Seal([]byte{0, 1, 'a'}, 6); &Reseal(older, PlainVersion)[0] != &older[0] {
		t.Error("an older payload was changed")
	}
	const want = "rdb: the payload's version or checksum is wrong: version 82, of which ebb reads up to 79 of Redis, and 80 to 81 of Valkey"
	if _, _, err := Open(Seal([]byte{0, 1, 'a'}, valkeyNewest+1)); !errors.Is(err, ErrFooter) || err.Error() != want {
		t.Error(err)
	}
	if Checksum(0, []byte("123456789")) != 0xe9c6d914c4b8d9ca {
		t.Error("not the checksum of Redis")
	}
}

// TestTypesBelongToTheServerThatCountsTheVersion: Redis and Valkey gave the same numbers to
// different types, and only the version of a payload says which server wrote it.
func TestTypesBelongToTheServerThatCountsTheVersion(t *testing.T) {
	valkey := append([]byte{22, 1, 1, 'f', 1, 'v'}, little(5000)...)
	early := []byte{22, 1, 6, 1, 'f', 1, 'v'} // of a release candidate of Redis 7.4
	for _, c := range []struct {
		value   []byte
		version int
		want    string
	}{
		{valkey, 80, `["f" "v" "5000"]`},
		{valkey, 81, `["f" "v" "5000"]`},
		{early, 12, `["f" "v" "6"]`},
		{early, 13, `["f" "v" "6"]`},
		{early, 79, `["f" "v" "6"]`},
		{early, 80, "rdb: bad data format: the value is cut off"},
		{valkey, 12, "rdb: bad data format: the value is cut off"},
		{valkey, 11, "rdb: bad data format: type 22 in version 11"},
		{[]byte{23, 1}, 81, "rdb: bad data format: type 23 (a path hash) of Valkey in version 81 is not known"},
		{[]byte{24, 1}, 80, "rdb: bad data format: type 24 of Valkey in version 80 is not known"},
		{[]byte{26, 1}, 13, "rdb: bad data format: type 26 (a stream with idempotency) of Redis in version 13 is not known"},
		{[]byte{27, 1}, 14, "rdb: bad data format: type 27 (a stream with NACKs) of Redis in version 14 is not known"},
		{[]byte{35, 1}, 17, "rdb: bad data format: type 35 (a set whose members have deadlines) of Redis in version 17 is not known"},
		{[]byte{33, 1}, 17, "rdb: bad data format: type 33 of Redis in version 17 is not known"},
		{[]byte{28, 1}, 80, "rdb: bad data format: type 28 of Valkey in version 80 is not known"},
	} {
		r, err := decode(Seal(slices.Clone(c.value), c.version))
		got := fmt.Sprintf("%q", r.flat())
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("type %d in version %d: %s, not %s", c.value[0], c.version, got, c.want)
		}
	}
}

// ziplistOf builds a ziplist of strings and integers, each in its shortest form.
func ziplistOf(items ...string) []byte {
	b := make([]byte, zipHead)
	before, last := 0, zipHead
	for _, s := range items {
		last = len(b)
		if before < zipBig {
			b = append(b, byte(before))
		} else {
			b = binary.LittleEndian.AppendUint32(append(b, zipBig), uint32(before))
		}
		n, ok := numeral.ParseInt(s)
		switch {
		case ok && n >= 0 && n <= 12:
			b = append(b, 0xf1+byte(n))
		case ok && n == int64(int8(n)):
			b = append(b, 0xfe, byte(n))
		case ok && n == int64(int16(n)):
			b = binary.LittleEndian.AppendUint16(append(b, 0xc0), uint16(n))
		case ok && n >= -1<<23 && n < 1<<23:
			b = append(b, 0xf0, byte(n), byte(n>>8), byte(n>>16))
		case ok && n == int64(int32(n)):
			b = binary.LittleEndian.AppendUint32(append(b, 0xd0), uint32(n))
		case ok:
			b = binary.LittleEndian.AppendUint64(append(b, 0xe0), uint64(n))
		case len(s) < 64:
			b = append(append(b, byte(len(s))), s...)
		case len(s) < 1<<14:
			b = append(append(b, 0x40|byte(len(s)>>8), byte(len(s))), s...)
		default:
			b = append(binary.BigEndian.AppendUint32(append(b, 0x80), uint32(len(s))), s...)
		}
		before = len(b) - last
	}
	b = append(b, packEnd)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], uint32(last))
	binary.LittleEndian.PutUint16(b[8:], uint16(len(items)))
	return b
}

// zipmapOf builds a zipmap of pairs, with some unused bytes behind each value.
func zipmapOf(pairs ...string) []byte {
	b := []byte{byte(len(pairs) / 2)}
	for i, s := range pairs {
		if len(s) < zipBig {
			b = append(b, byte(len(s)))
		} else {
			b = binary.LittleEndian.AppendUint32(append(b, zipBig), uint32(len(s)))
		}
		if i%2 == 1 {
			b = append(b, byte(i%4))
		}
		b = append(b, s...)
		if i%2 == 1 {
			b = append(b, make([]byte, i%4)...)
		}
	}
	return append(b, packEnd)
}

// valueOf puts a type before strings.
func valueOf(t Type, head []byte, strs ...[]byte) []byte {
	var e Encoder
	e.Buf = append([]byte{byte(t)}, head...)
	for _, s := range strs {
		e.length(uint64(len(s)))
		e.Buf = append(e.Buf, s...)
	}
	return e.Buf
}

// old are values of types that today's servers read but do not write.
func old() map[string]struct {
	value []byte
	want  []string
} {
	long := string(bytes.Repeat([]byte("x"), 300))
	huge := string(bytes.Repeat([]byte("y"), 17000))
	items := []string{"0", "12", "13", "-1", "-200", "70000", "-9000000", "3000000000", "a", long, huge, "b"}
	return map[string]struct {
		value []byte
		want  []string
	}{
		"list": {valueOf(TypeList, []byte{2}, []byte("a"), []byte("b")), []string{"a", "b"}},
		"zset": {append(valueOf(TypeZSet, []byte{3}, []byte("a")), 3, '1', '.', '5', 1, 'b', 254, 1, 'c', 255),
			[]string{"c", "-Inf", "a", "1.5", "b", "+Inf"}},
		"ziplist":   {valueOf(TypeListZiplist, nil, ziplistOf(items...)), items},
		"quicklist": {valueOf(TypeQuicklist, []byte{2}, ziplistOf("a", "1"), ziplistOf("b")), []string{"a", "1", "b"}},
		"ziphash":   {valueOf(TypeHashZiplist, nil, ziplistOf("a", "1", "b", long)), []string{"a", "1", "0", "b", long, "0"}},
		"zipzset":   {valueOf(TypeZSetZiplist, nil, ziplistOf("a", "-1", "b", "2.5")), []string{"a", "-1", "b", "2.5"}},
		"zipmap":    {valueOf(TypeHashZipmap, nil, zipmapOf("a", "1", "b", long)), []string{"a", "1", "0", "b", long, "0"}},
	}
}

func TestOldLayoutsAreRead(t *testing.T) {
	for name, c := range old() {
		r, err := decode(Seal(c.value, 9))
		if err != nil || !slices.Equal(r.flat(), c.want) {
			t.Errorf("%s: %v: %.200q", name, err, r.flat())
		}
	}
}

func TestWhatIsWrongIsRefused(t *testing.T) {
	pack := func(items ...string) []byte {
		var p packer
		p.reset()
		for _, s := range items {
			p.add([]byte(s))
		}
		return p.finish()
	}
	intset := func(ints ...int64) []byte { return appendIntset(nil, ints) }
	nan := binary.LittleEndian.AppendUint64([]byte{byte(TypeZSet2), 1, 1, 'a'}, math.Float64bits(math.NaN()))
	for name, value := range map[string][]byte{
		"nothing":               {},
		"unknown type":          {200},
		"module":                {byte(TypeModule), 0, 0},
		"empty list":            {byte(TypeList), 0},
		"empty set":             {byte(TypeSet), 0},
		"empty hash":            {byte(TypeHash), 0},
		"empty zset":            {byte(TypeZSet2), 0},
		"empty listpack":        valueOf(TypeHashListpack, nil, pack()),
		"empty quicklist":       valueOf(TypeQuicklist2, []byte{1, 2}, pack()),
		"half a pair":           valueOf(TypeHashListpack, nil, pack("a", "b", "c")),
		"twice the same field":  valueOf(TypeHashListpack, nil, pack("a", "b", "a", "c")),
		"twice the same member": valueOf(TypeSet, []byte{2}, []byte("a"), []byte("a")),
		"two spellings":         {byte(TypeSet), 2, 1, '1', 0xc0, 1},
		"score of text":         valueOf(TypeZSetListpack, nil, pack("a", "b")),
		"score nan":             valueOf(TypeZSetListpack, nil, pack("a", "nan")),
		"binary nan":            nan,
		"text nan":              {byte(TypeZSet), 1, 1, 'a', 253},
		"unsorted intset":       valueOf(TypeSetIntset, nil, intset(2, 1)),
		"intset with doubles":   valueOf(TypeSetIntset, nil, intset(1, 1)),
		"cut intset":            valueOf(TypeSetIntset, nil, intset(1, 2)[:10]),
		"set listpack before":   valueOf(TypeSetListpack, nil, pack("a")),
		"bytes behind":          {byte(TypeString), 1, 'a', 0},
		"more than there is":    {byte(TypeSet), 0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'a'},
		"string too long":       {byte(TypeString), 0x81, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'a'},
		"lzf bomb":              {byte(TypeString), 0xc3, 2, 0x80, 0x7f, 0xff, 0xff, 0xff, 0, 'a'},
		"lzf before the start":  {byte(TypeString), 0xc3, 4, 6, 0, 'a', 0x20, 5},
		"no such form":          {byte(TypeString), 0xc7},
		"unknown node":          valueOf(TypeQuicklist2, []byte{1, 3}, pack("a")),
	} {
		if _, err := decode(Seal(value, PlainVersion)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTruncatedAndChangedPayloadsNeverPanic cuts and flips the samples: whatever
// comes of it, decoding ends with an error or a value.
func TestTruncatedAndChangedPayloadsNeverPanic(t *testing.T) {
	for _, s := range samples(t, "redis80") {
		value, version, _ := Open(s.Dump)
		step := max(1, len(value)/200)
		for i := 0; i < len(value); i += step {
			if _, err := decode(Seal(slices.Clone(value[:i]), version)); err == nil {
				t.Errorf("%s: %d of %d bytes are a value", s, i, len(value))
			}
			for _, x := range []byte{1, 0x40, 0x80, 0xff} {
				v := slices.Clone(value)
				v[i] ^= x
				_, _ = decode(Seal(v, version))
			}
		}
	}
}

func FuzzRestore(f *testing.F) {
	for _, s := range samples(f, "*") {
		value, _, _ := Open(s.Dump)
		f.Add(value, true)
	}
	for _, c := range old() {
		f.Add(c.value, false)
	}
	f.Fuzz(func(t *testing.T, value []byte, newest bool) {
		version := PlainVersion
		if newest {
			version = Version
		}
		r := &recorder{}
		d := Decoder{MaxString: 1 << 24}
		if err := d.Restore(value, version, r); err != nil && !errors.Is(err, ErrFormat) {
			t.Fatal(err)
		}
	})
}
