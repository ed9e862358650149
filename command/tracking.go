package command

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

// tracking is client-side caching: who has read which key, and who wants to hear
// of which prefixes.
//
//	GET k ──▶ remember: shards[shard of k][k] gets the client's id
//	SET k ──▶ modified: the entry goes, and each id in it gets "invalidate k"
//
// An entry is guarded by the lock of its key's shard in the engine: it is written
// by who reads the key, and taken by who changes it, while they hold that lock
// anyhow. So no invalidation is lost between a read and a write, and a message is
// queued before others see the change. Keys of all databases share the table, as
// in Redis.
//
// Invariant: table is nil unless some client tracks; then a change costs one
// load.
type tracking struct {
	svc   *Service
	table atomic.Pointer[trackTable]

	mu      sync.Mutex // guards what follows, and changes of table and prefixes
	clients int
}

// trackTable is the table while anybody tracks.
type trackTable struct {
	shards   []map[string]ids // by shard; the engine's shard locks guard them
	keys     atomic.Int64
	items    atomic.Int64 // ids in all keys
	prefixes atomic.Pointer[[]prefixTrackers]
}

// ids are the clients that have read a key: mostly one.
type ids struct {
	first int64
	more  *[]int64
}

// prefixTrackers are the clients in broadcasting mode that want a prefix. Lists of
// them are sorted by prefix and never changed.
type prefixTrackers struct {
	prefix  string
	clients []*Session
}

// trackMode is how a client tracks; it is never changed.
type trackMode struct {
	bcast, optin, optout, noloop bool
	redirect                     int64 // the client that gets the messages; 0: itself
	prefixes                     []string
}

func (s ids) each(f func(id int64)) {
	f(s.first)
	if s.more != nil {
		for _, id := range *s.more {
			f(id)
		}
	}
}

func (s ids) len() int64 {
	if s.more == nil {
		return 1
	}
	return 1 + int64(len(*s.more))
}

func (s ids) has(id int64) bool {
	return s.first == id || s.more != nil && slices.Contains(*s.more, id)
}

// start has a session track from now on, in another way than before if it did.
func (t *tracking) start(c *Session, m *trackMode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := c.track.Load(); old != nil {
		m.prefixes = append(m.prefixes, old.prefixes...)
	} else {
		if t.clients++; t.clients == 1 {
			t.table.Store(&trackTable{shards: make([]map[string]ids, t.svc.DB.Shards())})
		}
	}
	if m.bcast {
		if len(m.prefixes) == 0 {
			m.prefixes = []string{""}
		}
		slices.Sort(m.prefixes)
		m.prefixes = slices.Compact(m.prefixes)
		t.addPrefixes(c, m.prefixes)
	}
	c.track.Store(m)
	c.observing &^= obsTracks | obsCaching
	if !m.bcast {
		c.observing |= obsTracks
	}
	c.view.show(viewBrokenRedir, false)
}

// stop ends a session's tracking, if there is any.
func (t *tracking) stop(c *Session) {
	m := c.track.Load()
	if m == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.track.Store(nil)
	c.observing &^= obsTracks | obsCaching
	c.view.show(viewBrokenRedir, false)
	if t.clients--; t.clients == 0 {
		t.table.Store(nil)
		return
	}
	if m.bcast {
		t.dropPrefixes(c)
	}
}

func (t *tracking) addPrefixes(c *Session, prefixes []string) {
	tab := t.table.Load()
	var list []prefixTrackers
	if old := tab.prefixes.Load(); old != nil {
		list = append(list, *old...)
	}
	for _, p := range prefixes {
		i, ok := slices.BinarySearchFunc(list, p, func(x prefixTrackers, p string) int { return strings.Compare(x.prefix, p) })
		switch {
		case !ok:
			list = slices.Insert(list, i, prefixTrackers{p, []*Session{c}})
		case !slices.Contains(list[i].clients, c):
			list[i].clients = append(slices.Clone(list[i].clients), c)
		}
	}
	tab.prefixes.Store(&list)
}

func (t *tracking) dropPrefixes(c *Session) {
	tab := t.table.Load()
	old := tab.prefixes.Load()
	if old == nil {
		return
	}
	var list []prefixTrackers
	for _, p := range *old {
		if i := slices.Index(p.clients, c); i >= 0 {
			p.clients = slices.Delete(slices.Clone(p.clients), i, i+1)
		}
		if len(p.clients) > 0 {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		tab.prefixes.Store(nil)
		return
	}
	tab.prefixes.Store(&list)
}

// sizes returns how many clients track, and how many keys, ids and prefixes there
// are.
func (t *tracking) sizes() (clients, keys, items, prefixes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tab := t.table.Load(); tab != nil {
		keys, items = tab.keys.Load(), tab.items.Load()
		if p := tab.prefixes.Load(); p != nil {
			prefixes = int64(len(*p))
		}
	}
	return int64(t.clients), keys, items, prefixes
}

// read notes the keys that a session's command has read in a transaction, which
// holds their shards still.
func (t *tracking) read(c *Session, tx *engine.Tx, spec *Spec, args [][]byte) {
	tab := t.table.Load()
	if tab == nil || !spec.Has(ReadOnly) || !c.track.Load().tracks(c.observing&obsCaching != 0) {
		return
	}
	refs, err := spec.AppendKeys(nil, args)
	if err != nil {
		return
	}
	for _, r := range refs {
		key := args[r.Pos]
		if !tx.Holds(key) { // it may have changed since it was read
			t.tell(c.id, nil, key)
			continue
		}
		t.add(tab, tx, key, c.id)
	}
}

// add notes one key, and makes room for it where the table is full.
func (t *tracking) add(tab *trackTable, tx *engine.Tx, key []byte, id int64) {
	i := tx.ShardOf(key)
	m := tab.shards[i]
	if m == nil {
		m = map[string]ids{}
		tab.shards[i] = m
	}
	s, ok := m[string(key)]
	switch {
	case !ok:
		if limit := t.svc.trackMax.Load(); limit > 0 && tab.keys.Load() >= limit {
			t.shrink(tab, m, limit-1)
		}
		m[string(key)] = ids{first: id}
		tab.keys.Add(1)
	case s.has(id):
		return
	case s.more == nil:
		s.more = &[]int64{id}
		m[string(key)] = s
	default:
		*s.more = append(*s.more, id)
	}
	tab.items.Add(1)
}

// shrinkKeys is how many keys one read takes out of a table that is too large:
// more than it adds, so that a bound that was lowered is reached.
const shrinkKeys = 100

// shrink invalidates keys of a shard, as they come, until the table holds no more
// than limit. Where a shard has none to give, the table exceeds its bound, by a
// key for each shard at most.
func (t *tracking) shrink(tab *trackTable, m map[string]ids, limit int64) {
	n := 0
	for key, s := range m {
		if n == shrinkKeys || tab.keys.Load() <= limit {
			return
		}
		n++
		delete(m, key)
		t.forgotten(tab, s, nil, []byte(key))
	}
}

// forgotten settles that an entry is gone: it tells those who read the key.
func (t *tracking) forgotten(tab *trackTable, s ids, caller *Session, key []byte) {
	tab.keys.Add(-1)
	tab.items.Add(-s.len())
	s.each(func(id int64) { t.tell(id, caller, key) })
}

// modified is called when a key was changed, came or went, with its shard locked.
func (t *tracking) modified(tx *engine.Tx, key []byte) {
	tab := t.table.Load()
	if tab == nil {
		return
	}
	if p := tab.prefixes.Load(); p != nil {
		t.collect(tx, p, key)
	}
	m := tab.shards[tx.ShardOf(key)]
	if len(m) == 0 {
		return
	}
	if s, ok := m[string(key)]; ok {
		delete(m, string(key))
		caller, _ := tx.Caller().(*Session)
		t.forgotten(tab, s, caller, key)
	}
}

// flushed is called when databases were emptied, with all shards locked.
func (t *tracking) flushed() {
	tab := t.table.Load()
	if tab == nil {
		return
	}
	clear(tab.shards)
	tab.keys.Store(0)
	tab.items.Store(0)
	for _, c := range t.svc.clients.everybody() {
		if m := c.track.Load(); m != nil {
			t.send(c, m, nil)
		}
	}
}

// tell invalidates a key for a client that has read it, if it still tracks.
// caller is who changed the key.
func (t *tracking) tell(id int64, caller *Session, key []byte) {
	c := t.svc.clients.find(id)
	if c == nil {
		return
	}
	m := c.track.Load()
	if m == nil || m.bcast || m.noloop && c == caller {
		return
	}
	t.send(c, m, [][]byte{key})
}

// invalidateChannel is where RESP2 clients subscribe for the messages of others.
const invalidateChannel = "__redis__:invalidate"

// send queues an invalidation of keys, nil for all, to a client or to the one that
// gets its messages. A client with RESP2 can only be that, and must be subscribed
// to something.
func (t *tracking) send(c *Session, m *trackMode, keys [][]byte) {
	to := c
	if m.redirect != 0 {
		if to = t.svc.clients.find(m.redirect); to == nil {
			t.broken(c, m)
			return
		}
	}
	w := resp.Writer{Proto: 2}
	switch {
	case to.proto.Load() == 3:
		w.Proto = 3
		w.Push(2)
		w.BulkString("invalidate")
	case to != c && to.subs.n.Load() > 0:
		w.Array(3)
		w.BulkString("message")
		w.BulkString(invalidateChannel)
	default:
		return
	}
	if keys == nil {
		w.Null()
	} else {
		w.Array(len(keys))
		for _, k := range keys {
			w.Bulk(k)
		}
	}
	to.push(w.Buf)
}

// broken says that the client is gone that was to get c's messages.
func (t *tracking) broken(c *Session, m *trackMode) {
	c.view.show(viewBrokenRedir, true)
	if c.proto.Load() == 3 {
		w := resp.Writer{Proto: 3}
		w.Push(2)
		w.BulkString("tracking-redir-broken")
		w.Int(m.redirect)
		c.push(w.Buf)
	}
}

// broadcast gathers the keys that a transaction changes, for those who track by
// prefix: each prefix makes one message.
type broadcast struct {
	t        *tracking
	prefixes *[]prefixTrackers
	keys     []map[string]bool // by prefix
}

// collect adds a key to the broadcast of its transaction.
func (t *tracking) collect(tx *engine.Tx, prefixes *[]prefixTrackers, key []byte) {
	b, _ := tx.Ending().(*broadcast)
	if b == nil {
		b = &broadcast{t: t, prefixes: prefixes, keys: make([]map[string]bool, len(*prefixes))}
		tx.OnEnd(b)
	}
	for i, p := range *b.prefixes {
		if len(p.prefix) <= len(key) && p.prefix == string(key[:len(p.prefix)]) {
			if b.keys[i] == nil {
				b.keys[i] = map[string]bool{}
			}
			b.keys[i][string(key)] = true
		}
	}
}

// End implements engine.Ending: it queues the messages.
func (b *broadcast) End(tx *engine.Tx) {
	caller, _ := tx.Caller().(*Session)
	for i, p := range *b.prefixes {
		if len(b.keys[i]) == 0 {
			continue
		}
		keys := make([][]byte, 0, len(b.keys[i]))
		for k := range b.keys[i] {
			keys = append(keys, []byte(k))
		}
		sort.Slice(keys, func(i, j int) bool { return string(keys[i]) < string(keys[j]) })
		for _, c := range p.clients {
			if m := c.track.Load(); m != nil && m.bcast && !(m.noloop && c == caller) {
				b.t.send(c, m, keys)
			}
		}
	}
}
