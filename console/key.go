package console

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// keyView is the response of GET api/key.
type keyView struct {
	K        blob     `json:"k"`
	Type     string   `json:"type"`
	Encoding string   `json:"encoding,omitempty"`
	Bytes    *int64   `json:"bytes,omitempty"`
	Idle     *int64   `json:"idle,omitempty"` // ms
	Freq     *int64   `json:"freq,omitempty"`
	TTL      *int64   `json:"pttl,omitempty"`
	Slide    int64    `json:"slide,omitempty"` // the span to which each read extends a sliding TTL, ms
	N        *int64   `json:"n,omitempty"`
	Version  string   `json:"version"`          // as in the events about the key
	Digest   string   `json:"digest,omitempty"` // of a string that is shown in full: the digest for IFDEQ
	Next     *string  `json:"next"`             // the parameter from of the next page; null at the end
	Now      int64    `json:"now"`
	Body     any      `json:"body"`
	Denied   []string `json:"denied,omitempty"`
}

// viewers returns the body of a key by its type, and the parameter from of its next page.
var viewers = map[string]func(k *call, q *request, key string, p itemRange) (body any, next string, err error){
	"string": viewString, "hash": viewHash, "set": viewSet, "zset": viewZSet, "list": viewList, "stream": viewStream,
	"limiter": viewInfo("RL.INFO"), "lock": viewInfo("LOCK.INFO"), "semaphore": viewInfo("SEM.INFO"), "delayqueue": viewInfo("DQ.INFO"),
	"MBbloom--": viewBloom,
}

// getKey answers GET api/key?k&from&count&find&order. A sorted set is listed from its lowest score, or with
// order=highest from its highest.
func getKey(k *call, q *request) (any, error) {
	key, err := q.key("k")
	if err != nil {
		return nil, err
	}
	order, err := q.word("order", "lowest", "highest")
	if err != nil {
		return nil, err
	}
	p := itemRange{from: q.text("from"), find: q.text("find"), highest: order == "highest"}
	if p.count, err = q.number("count", 200, 1, 1000); err != nil {
		return nil, err
	}
	if !k.allowed([][]byte{[]byte("TYPE"), []byte(key)}) {
		return nil, errNotAllowed
	}
	version := k.c.versions.of(k.s.db, key) // before the reads
	v, err := k.do(q.ctx, "TYPE", key)
	if err != nil {
		return nil, err
	}
	if v.Str == "none" {
		return nil, errGone("the key does not exist")
	}
	out := &keyView{K: wholeOf(key), Type: v.Str, Now: k.c.now(), Version: k.versionOf(q, key, v.Str, version)}
	k.addFacts(q, key, out)
	p.state = k.c.stateOf(k.s.db, key)
	if err := k.addBody(q, key, p, out); err != nil {
		return nil, err
	}
	out.Denied = k.denied
	return out, nil
}

// addFacts adds the facts about a key that the user may see, besides its value: its TTL, its size, its use,
// and its encoding.
func (k *call) addFacts(q *request, key string, out *keyView) {
	integer := func(args ...any) *int64 {
		v, err := k.do(q.ctx, args...)
		if err != nil || v.Kind != resp.KindInt {
			return nil
		}
		return &v.Int
	}
	out.TTL, out.Bytes, out.N = integer("PTTL", key), integer("MEMORY", "USAGE", key), k.count(q, key, out.Type)
	out.Slide = k.slide(key, out.TTL)
	if strings.HasSuffix(k.c.svc.Config.String("maxmemory-policy"), "-lfu") { // the other command would be an error
		out.Freq = integer("OBJECT", "FREQ", key)
	} else if out.Idle = integer("OBJECT", "IDLETIME", key); out.Idle != nil {
		*out.Idle *= 1000
	}
	if e, err := k.do(q.ctx, "OBJECT", "ENCODING", key); err == nil {
		out.Encoding = e.Str
	}
	if out.Type == "string" {
		out.Digest = k.digest(q, key)
	}
}

// slide returns the span to which each read extends the TTL of a key, in ms, which no command reports; 0: the
// TTL does not slide. ttl is the remaining time of the key, nil if the user may not see it.
func (k *call) slide(key string, ttl *int64) int64 {
	if ttl == nil || *ttl < 0 {
		return 0
	}
	span, _ := k.c.svc.DB.TrySpan(k.s.db, []byte(key)) // 0 while another client holds the shard
	return span
}

// addBody adds a page of the key's value, or nothing if the user may not read it.
func (k *call) addBody(q *request, key string, p itemRange, out *keyView) error {
	n := int64(0)
	if out.N != nil {
		n = *out.N
	}
	p.count = pageOf(p.count, n, out.Bytes)
	p.large = p.count < minScan
	view := viewers[out.Type]
	if view == nil {
		return nil
	}
	body, next, err := view(k, q, key, p)
	switch {
	case err == errNotAllowed: // the other facts are still shown
	case err != nil:
		return err
	default:
		out.Body = body
	}
	if next != "" {
		out.Next = &next
	}
	return nil
}

// digest returns the digest of a string for IFDEQ. It is "" for a string that the page does not get in full,
// and so does not edit, and if the user may not request the digest. With the digest of a hidden value a
// viewer could try values.
func (k *call) digest(q *request, key string) string {
	if k.c.opt.HideValues {
		return ""
	}
	length, err := k.do(q.ctx, "STRLEN", key)
	if err != nil || length.Kind != resp.KindInt || length.Int > previewBytes {
		return ""
	}
	v, err := k.do(q.ctx, "DIGEST", key)
	if err != nil {
		return ""
	}
	return v.Str
}

func viewString(k *call, q *request, key string, _ itemRange) (any, string, error) {
	length, err := k.do(q.ctx, "STRLEN", key)
	if err != nil {
		return nil, "", err
	}
	body := struct {
		V    blob   `json:"v"`
		Len  int64  `json:"len"`
		Seen string `json:"seen,omitempty"` // the mark of a value that is shown in full
	}{Len: length.Int}
	if k.c.opt.HideValues {
		body.V = blob{n: int(length.Int), hidden: true}
		return body, "", nil
	}
	v, err := k.do(q.ctx, "GETRANGE", key, 0, previewBytes-1+utf8Rest)
	if err != nil {
		return nil, "", err
	}
	if body.V = cutTo(v.Str, previewBytes); body.V.cut {
		body.V.n = int(length.Int)
	} else {
		body.Seen = k.c.markOf(v, 0, "get", key)
	}
	return body, "", nil
}

// utf8Rest is the number of bytes beyond a preview that show whether the preview ends within a character.
const utf8Rest = 4

// entry is one entry of a stream.
type entry struct {
	ID     string   `json:"id"`
	Fields [][2]any `json:"fields"`
	More   int      `json:"more,omitempty"` // the number of fields that are left out
}

// entryFields is the number of fields of an entry that a page gets.
const entryFields = 20

// viewStream shows the entries of a stream, the newest first, and its groups. find selects a range of IDs,
// "first..last", of which either may be missing.
func viewStream(k *call, q *request, key string, p itemRange) (any, string, error) {
	var body struct {
		Rows   []entry        `json:"rows"`
		Info   map[string]any `json:"info,omitempty"`
		Groups []groupRow     `json:"groups,omitempty"`
	}
	first, last, _ := strings.Cut(p.find, "..")
	before := p.from
	if before == "" || before == "0" {
		before = cmp.Or(last, "+")
	}
	v, err := k.do(q.ctx, "XREVRANGE", key, before, cmp.Or(first, "-"), "COUNT", p.count+1)
	if err != nil {
		return nil, "", err
	}
	next, elems := "", v.Elems
	if int64(len(elems)) > p.count {
		elems = elems[:p.count]
		next = "(" + elems[p.count-1].Elems[0].Str
	}
	body.Rows = make([]entry, len(elems))
	for i, e := range elems {
		body.Rows[i].ID = e.Elems[0].Str
		fields := e.Elems[1].Elems
		for j := 0; j+1 < len(fields); j += 2 {
			if j/2 >= entryFields {
				body.Rows[i].More = len(fields)/2 - entryFields
				break
			}
			body.Rows[i].Fields = append(body.Rows[i].Fields, [2]any{nameOf(fields[j]), k.c.valueOf(fields[j+1])})
		}
	}
	if info, err := k.do(q.ctx, "XINFO", "STREAM", key); err == nil {
		body.Info = map[string]any{}
		for name, v := range info.Pairs {
			if name.Str != "first-entry" && name.Str != "last-entry" {
				body.Info[name.Str] = k.c.factsJSON(v)
			}
		}
	}
	body.Groups = k.groups(q, key)
	return body, next, nil
}

// viewInfo returns a viewer that shows the reply of a command about the key.
func viewInfo(command string) func(*call, *request, string, itemRange) (any, string, error) {
	return func(k *call, q *request, key string, _ itemRange) (any, string, error) {
		v, err := k.do(q.ctx, command, key)
		if err != nil {
			return nil, "", err
		}
		if v.IsNull() {
			return nil, "", errGone("the key has expired")
		}
		return viewInfoAnswer{k.c.factsJSON(v)}, "", nil
	}
}

// bloomFacts are the facts about a Bloom filter, with the words of BF.INFO that return them.
var bloomFacts = []struct{ name, word string }{{"items", "ITEMS"}, {"capacity", "CAPACITY"}, {"error", "ERROR"}, {"layers", "FILTERS"},
	{"expansion", "EXPANSION"}, {"window", "WINDOW"}, {"generations", "GENERATIONS"}}

// viewBloom shows a Bloom filter.
func viewBloom(k *call, q *request, key string, _ itemRange) (any, string, error) {
	info := map[string]any{}
	for _, f := range bloomFacts {
		v, err := k.do(q.ctx, "BF.INFO", key, f.word)
		if err != nil {
			return nil, "", err
		}
		if len(v.Elems) == 1 {
			info[f.name] = k.c.factsJSON(v.Elems[0])
		}
	}
	return viewInfoAnswer{info}, "", nil
}

// viewInfoAnswer is the body of a key of which the console shows only facts.
type viewInfoAnswer struct {
	Info any `json:"info"`
}

// factsJSON returns a reply in a form without kinds, for facts: integers as text, strings as byte strings,
// maps as objects.
func (c *Console) factsJSON(v resp.Value) any {
	switch v.Kind {
	case resp.KindMap:
		out := map[string]any{}
		for name, x := range v.Pairs {
			out[name.Str] = c.factsJSON(x)
		}
		return out
	case resp.KindArray, resp.KindSet, resp.KindPush:
		out := make([]any, len(v.Elems))
		for i, e := range v.Elems {
			out[i] = c.factsJSON(e)
		}
		return out
	case resp.KindInt:
		return text64(v.Int)
	case resp.KindDouble:
		return double(v.Float)
	case resp.KindBulk, resp.KindStatus, resp.KindVerbatim:
		return nameOf(v)
	case resp.KindBool:
		return v.Int != 0
	}
	return nil
}

// versionOf returns a text that identifies the state of a key: its number, and for a stream a checksum of the
// state of its groups, because XREADGROUP and XACK do not count as changes for a watch. n is the number that
// the caller has read before the type.
func (k *call) versionOf(q *request, key, kind string, n int64) string {
	if kind != "stream" {
		return text64(n)
	}
	sum := fnv.New64a()
	for _, g := range k.groups(q, key) {
		_, _ = fmt.Fprintf(sum, "%q %q %d %d", g.Name.s, g.Last, g.Consumers, g.Pending)
		for _, c := range g.ConsumersRows {
			_, _ = fmt.Fprintf(sum, " %q %d", c.Name.s, c.Pending)
		}
	}
	return text64(n) + "-" + strconv.FormatUint(sum.Sum64(), 16)
}
