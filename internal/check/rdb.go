package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ebbdb/ebb/internal/rdb"
)

// maxErrors is the number of invalid values of a file that the check prints. More lines would not
// help the reader.
const maxErrors = 20

// maxUnique is the number of keys of a file that the check remembers, to find a key that comes
// twice. Each takes 16 bytes and its share of the map, some 400 MiB in all.
const maxUnique = 8 << 20

// snapshotCheck has the results so far of the check of one RDB file.
type snapshotCheck struct {
	c         *checker
	aux       map[string]string
	functions int
	rows      map[row]*counts
	modules   map[string]int
	keys      map[xxh3.Uint128]bool
	name      []byte // scratch: a database and a key
	total     int
	broken    int
	verify    verifier
}

// row is a line of the table.
type row struct {
	db   int
	kind string
}

type counts struct{ keys, deadlines, expired, bytes int64 }

// snapshot checks an RDB file, and the commands that may follow in an append-only
// file.
func (c *checker) snapshot(in *input) {
	s := &snapshotCheck{c: c, aux: map[string]string{}, rows: map[row]*counts{}, modules: map[string]int{}, keys: map[xxh3.Uint128]bool{}}
	rd := rdb.NewReader(in, rdb.ReaderOptions{
		Aux:           func(k, v []byte) error { s.aux[string(k)] = string(v); return nil },
		Function:      func([]byte) error { s.functions++; return nil },
		UnknownModule: func(module string, _ int, _ []byte) error { s.modules[module]++; return nil },
	})
	var wrong []error
	for {
		e, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.entry(e)
			if err == nil || s.broken < maxErrors {
				wrong = appendError(wrong, err)
				continue
			}
		}
		wrong = append(wrong, err)
		break
	}
	c.printf("%s: RDB file%s, version %d of %s%s, %d bytes%s", in.path, compressed(rd), rd.Version(), rd.Dialect(),
		s.server(), in.size, s.written())
	s.table()
	for _, err := range wrong {
		c.bad("%v", err)
	}
	for _, m := range slices.Sorted(maps.Keys(s.modules)) {
		c.bad("values of the module %q, which ebb cannot load: %d", m, s.modules[m])
	}
	if len(wrong) == 0 {
		c.behind(in, rd)
	}
}

// compressed returns a text about the compression of a file, "" if it is not compressed.
func compressed(rd *rdb.Reader) string {
	if with := rd.Compression(); with != rdb.Uncompressed {
		return " compressed with " + with.String()
	}
	return ""
}

func appendError(all []error, err error) []error {
	if err != nil {
		all = append(all, err)
	}
	return all
}

// behind checks the bytes after the end of an RDB file: commands, or none.
func (c *checker) behind(in *input, rd *rdb.Reader) {
	rest := slices.Clone(rd.Rest())
	if len(rest) < headSize {
		more := make([]byte, headSize)
		n, _ := io.ReadFull(in, more) // a later read returns the error again
		rest = append(rest, more[:n]...)
	}
	if len(rest) == 0 {
		return
	}
	if kindOf("", rest) != commands {
		c.bad("%d bytes follow the end at offset %d", in.size-rd.Offset(), rd.Offset())
		return
	}
	c.printf("  and commands from offset %d on", rd.Offset())
	in.r = io.MultiReader(bytes.NewReader(rest), in.r)
	in.read -= int64(len(rest))
	c.commands(in, rd.Offset())
}

// entry counts a key and decodes its value.
func (s *snapshotCheck) entry(e *rdb.Entry) error {
	s.total++
	if len(s.keys) < maxUnique {
		s.name = append(binary.LittleEndian.AppendUint32(s.name[:0], uint32(e.DB)), e.Key...)
		id := xxh3.Hash128(s.name)
		if s.keys[id] {
			s.broken++
			return e.Wrong(errors.New("the key comes twice"))
		}
		s.keys[id] = true
	}
	v := &s.verify
	v.reset()
	err := v.decoder.Entry(e, v)
	if err == nil && v.own && s.c.Value != nil {
		if err = s.c.Value(e); err != nil {
			err = e.Wrong(err)
		}
	}
	if err != nil {
		s.broken++
		v.kind = "broken"
	}
	s.count(e, v.kind)
	return err
}

func (s *snapshotCheck) count(e *rdb.Entry, kind string) {
	r := s.rows[row{e.DB, kind}]
	if r == nil {
		r = &counts{}
		s.rows[row{e.DB, kind}] = r
	}
	r.keys++
	r.bytes += int64(len(e.Key) + len(e.Value))
	if e.Deadline != 0 {
		r.deadlines++
		if e.Deadline < s.c.Now {
			r.expired++
		}
	}
}

// server returns the version of the server that wrote the file, if the file names it.
func (s *snapshotCheck) server() string {
	for _, name := range []string{"ebb-ver", "valkey-ver", "redis-ver"} {
		if v := s.aux[name]; v != "" {
			return " (" + name + " " + v + ")"
		}
	}
	return ""
}

// written returns a text with the time at which the file was written, if the file contains it.
func (s *snapshotCheck) written() string {
	t, err := strconv.ParseInt(s.aux["ctime"], 10, 64)
	if err != nil {
		return ""
	}
	return ", written " + utc(t)
}

// utc formats a time in seconds since 1970.
func utc(seconds int64) string {
	return time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04:05 UTC")
}

func (s *snapshotCheck) table() {
	c := s.c
	s.notes()
	if len(s.rows) == 0 {
		c.printf("  no keys")
		return
	}
	c.printf("  %8s  %-12s %10s %14s %10s %14s", "database", "type", "keys", "with deadline", "expired", "bytes")
	var sum counts
	for _, r := range slices.SortedFunc(maps.Keys(s.rows), compareRows) {
		n := s.rows[r]
		c.printf("  %8d  %-12s %10d %14d %10d %14d", r.db, r.kind, n.keys, n.deadlines, n.expired, n.bytes)
		sum.keys += n.keys
		sum.deadlines += n.deadlines
		sum.expired += n.expired
		sum.bytes += n.bytes
	}
	c.printf("  %8s  %-12s %10d %14d %10d %14d", "all", "", sum.keys, sum.deadlines, sum.expired, sum.bytes)
}

// notes prints the results that are not rows of the table.
func (s *snapshotCheck) notes() {
	c := s.c
	if s.functions > 0 {
		c.printf("  libraries of functions: %d", s.functions)
	}
	if len(s.keys) == maxUnique && s.total > maxUnique {
		c.printf("  keys that come twice were looked for among the first %d", maxUnique)
	}
}

func compareRows(a, b row) int {
	if a.db != b.db {
		return a.db - b.db
	}
	if a.kind < b.kind {
		return -1
	}
	return 1
}

// verifier is an rdb.Builder that stores only the items that must be unique.
type verifier struct {
	decoder rdb.Decoder
	kind    string // the name of the kind in the table
	own     bool   // the type is ebb's own
	group   int    // the number of the stream's group, from 1
	seen    map[xxh3.Uint128]bool
}

func (v *verifier) reset() {
	v.kind, v.own, v.group = "", false, 0
	if len(v.seen) > 4096 || v.seen == nil { // clearing a map costs as much as its greatest size
		v.seen = map[xxh3.Uint128]bool{}
		return
	}
	clear(v.seen)
}

// once returns an error if an item came before.
func (v *verifier) once(what string, b []byte) error {
	id := xxh3.Hash128(b)
	if v.seen[id] {
		return fmt.Errorf("%w: the %s %.64q comes twice", rdb.ErrFormat, what, b)
	}
	v.seen[id] = true
	return nil
}

func (v *verifier) begin(kind string) error { v.kind = kind; return nil }

// The methods of rdb.Builder.
func (v *verifier) String([]byte) error                { return v.begin("string") }
func (v *verifier) BeginList(int) error                { return v.begin("list") }
func (v *verifier) Element([]byte) error               { return nil }
func (v *verifier) BeginSet(int) error                 { return v.begin("set") }
func (v *verifier) Member(m []byte) error              { return v.once("member", m) }
func (v *verifier) BeginZSet(int) error                { return v.begin("zset") }
func (v *verifier) Scored(m []byte, _ float64) error   { return v.once("member", m) }
func (v *verifier) BeginHash(int) error                { return v.begin("hash") }
func (v *verifier) Field(f, _ []byte, _ int64) error   { return v.once("field", f) }
func (v *verifier) BeginStream(int) error              { return v.begin("stream") }
func (v *verifier) Entry(rdb.StreamID, [][]byte) error { return nil }
func (v *verifier) EndEntries(rdb.StreamInfo) error    { return nil }
func (v *verifier) Pending(rdb.Pending) error          { return nil }

// Group implements rdb.Builder. The names of groups are unique in a stream, and those of consumers
// in a group.
func (v *verifier) Group(g rdb.Group) error {
	v.group++
	return v.once("group", append([]byte("0 "), g.Name...))
}

// Consumer implements rdb.Builder.
func (v *verifier) Consumer(c rdb.Consumer) error {
	return v.once("consumer", append(fmt.Appendf(nil, "%d ", v.group), c.Name...))
}

// Module names the types of ebb as TYPE does.
func (v *verifier) Module(name string, _ []byte) error {
	v.own = true
	kinds := map[string]string{"ebb-tsets": "set", "ebb-tzset": "zset", "ebb-tlist": "list", "ebb-limit": "limiter",
		"ebb-lock-": "lock", "ebb-semph": "semaphore", "ebb-queue": "delayqueue", "ebb-bloom": "MBbloom--"}
	if v.kind = kinds[name]; v.kind == "" {
		return fmt.Errorf("%w: there is no type %q", rdb.ErrFormat, name)
	}
	return nil
}
