package rdb

import (
	"fmt"
	"sort"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/rdbtest"
)

// recorder is a Builder that records its calls, as strings, and
// refuses what it has already.
type recorder struct {
	kind   string
	n      int
	parts  [][]string
	seen   map[string]bool
	sorted bool
}

func (r *recorder) begin(kind string, n int) error {
	r.kind, r.n, r.seen, r.sorted = kind, n, map[string]bool{}, kind == "set" || kind == "hash"
	return nil
}

func (r *recorder) add(parts ...string) error {
	r.parts = append(r.parts, parts)
	return nil
}

func (r *recorder) unique(key []byte, parts ...string) error {
	if r.seen[string(key)] {
		return bad("twice the same")
	}
	r.seen[string(key)] = true
	return r.add(parts...)
}

func (r *recorder) Module(name string, data []byte) error {
	r.kind = "module"
	return r.add(name, string(data))
}

func (r *recorder) String(val []byte) error { r.kind = "string"; return r.add(string(val)) }

func (r *recorder) BeginList(n int) error      { return r.begin("list", n) }
func (r *recorder) Element(elem []byte) error  { return r.add(string(elem)) }
func (r *recorder) BeginSet(n int) error       { return r.begin("set", n) }
func (r *recorder) Member(member []byte) error { return r.unique(member, string(member)) }
func (r *recorder) BeginZSet(n int) error      { return r.begin("zset", n) }
func (r *recorder) BeginHash(n int) error      { return r.begin("hash", n) }
func (r *recorder) BeginStream(int) error      { return r.begin("stream", 0) }

func (r *recorder) Scored(member []byte, score float64) error {
	return r.unique(member, string(member), score64(score))
}

func score64(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func (r *recorder) Field(field, value []byte, deadline int64) error {
	return r.unique(field, string(field), string(value), strconv.FormatInt(deadline, 10))
}

func (id StreamID) String() string { return fmt.Sprintf("%d-%d", id.Ms, id.Seq) }

func (r *recorder) Entry(id StreamID, pairs [][]byte) error {
	parts := []string{"entry " + id.String()}
	for _, p := range pairs {
		parts = append(parts, string(p))
	}
	return r.add(parts...)
}

func (r *recorder) EndEntries(s StreamInfo) error {
	return r.add("last "+s.Last.String(), "max-deleted "+s.MaxDeleted.String(), fmt.Sprintf("added %d", s.Added))
}

func (r *recorder) Group(g Group) error {
	return r.add(fmt.Sprintf("group %s %v %d", g.Name, g.Last, g.Read))
}

func (r *recorder) Consumer(c Consumer) error {
	return r.add(fmt.Sprintf("consumer %s %d %d", c.Name, c.Seen, c.Active))
}

func (r *recorder) Pending(p Pending) error {
	return r.add(fmt.Sprintf("pending %v %d %d", p.ID, p.Delivered, p.Count))
}

// flat lists the record, in an order that does not depend on that of
// the payload.
func (r *recorder) flat() []string {
	if r.sorted {
		sort.Slice(r.parts, func(i, j int) bool { return r.parts[i][0] < r.parts[j][0] })
	}
	if r.kind == "zset" {
		sort.SliceStable(r.parts, func(i, j int) bool {
			a, _ := strconv.ParseFloat(r.parts[i][1], 64)
			b, _ := strconv.ParseFloat(r.parts[j][1], 64)
			return a < b || a == b && r.parts[i][0] < r.parts[j][0]
		})
	}
	out := []string{}
	for _, p := range r.parts {
		out = append(out, p...)
	}
	return out
}

// decode decodes a DUMP payload.
func decode(payload []byte) (*recorder, error) {
	value, version, err := Open(payload)
	if err != nil {
		return nil, err
	}
	r := &recorder{}
	var d Decoder
	err = d.Restore(value, version, r)
	return r, err
}

// samples are the payloads of one of the servers in testdata, or of all.
func samples(t testing.TB, server string) []rdbtest.Payload {
	return rdbtest.Payloads(t, "testdata", server)
}
