package tracking

import (
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/prefixes"
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
type Tracker struct {
	db    *engine.DB
	host  Host
	table atomic.Pointer[table]
	limit atomic.Int64 // of tracked keys; 0: none

	mu      sync.Mutex // guards what follows, and changes of table
	clients int
}

// Client is a client as tracking sees it. Any goroutine may call its methods.
type Client interface {
	ID() int64
	// Push queues a message, encoded for the client's protocol, without waiting. Shards and
	// tracking may be locked.
	Push(msg []byte)
	// RESP3 reports whether the client's protocol is RESP3.
	RESP3() bool
	// Subscribed reports whether the client has a subscription of pub/sub.
	Subscribed() bool
	// Readable returns those of the keys that the client's user may read. It may return keys
	// itself, and does not change it.
	Readable(keys [][]byte) [][]byte
	// Tracking returns the client's state, always the same.
	Tracking() *State
}

// Host knows the clients.
type Host interface {
	// Client returns the client with an id, nil if it is gone.
	Client(id int64) Client
	// Clients returns all clients, in no order.
	Clients() []Client
}

// State is what tracking keeps for a client. The zero value is off.
type State struct {
	mode   atomic.Pointer[Mode] // nil: off
	broken atomic.Bool
}

// Mode returns how the client tracks, nil if it does not.
func (s *State) Mode() *Mode { return s.mode.Load() }

// Broken reports whether the client to which the messages are redirected is gone.
func (s *State) Broken() bool { return s.broken.Load() }

// init prepares a tracker for an engine.
func (t *Tracker) Init(db *engine.DB, host Host) { t.db, t.host = db, host }

// active reports whether a client tracks.
func (t *Tracker) Active() bool { return t.table.Load() != nil }

// setLimit sets how many keys are tracked at most, 0 for any number. Lower makes a lower
// limit hold for the keys that are tracked already.
func (t *Tracker) SetLimit(n int64) { t.limit.Store(n) }

// hold calls f with the table of prefixes locked, for tests of what must not wait for that
// lock. A client must be tracking.
func (t *Tracker) Hold(f func()) {
	tab := t.table.Load()
	tab.prefixes.mu.Lock()
	defer tab.prefixes.mu.Unlock()
	f()
}

// table is the table while anybody tracks.
type table struct {
	shards   []map[string]ids // by shard; the engine's shard locks guard them
	keys     atomic.Int64
	items    atomic.Int64 // ids in all keys
	bytes    atomic.Int64 // about what they take up; -1: the table is given up
	prefixes prefixTable
}

// About what a key that is tracked takes up beside its name, and each further client that
// has read it.
const (
	trackedKeyBytes = 64
	trackedIDBytes  = 12
)

// charge counts bytes of the table as used memory, unless it was given up.
func (t *Tracker) charge(tab *table, n int64) {
	for {
		old := tab.bytes.Load()
		if old < 0 {
			return
		}
		if tab.bytes.CompareAndSwap(old, old+n) {
			t.db.Charge(n)
			return
		}
	}
}

// prefixTable has the clients in broadcasting mode. What adds or removes many does so some
// at a time.
type prefixTable struct {
	used atomic.Bool // there are some: while not, a change does not look

	mu     sync.RWMutex // guards what follows
	byName map[string]*prefixTrackers
	index  prefixes.Index[*prefixTrackers]
}

// prefixTrackers are the clients that want a prefix.
type prefixTrackers struct {
	prefix  string
	clients []*prefixTracker
	index   *prefixes.Entry[*prefixTrackers]
}

// prefixTracker is one of them.
type prefixTracker struct {
	c  Client
	of *prefixTrackers
	at int
}

// prefixSlice is for how many prefixes the table is locked at once.
const prefixSlice = 256

// prefixBytes is about what a prefix of a client takes up beside its text.
const prefixBytes = 360

// ownPrefixes are those that a client in broadcasting mode has asked for. Its own
// goroutine alone uses them, but for n and bytes.
type ownPrefixes struct {
	sorted prefixes.Set
	list   []*prefixTracker
	n      atomic.Int32
	bytes  atomic.Int64
}

// ids are the clients that have read a key: mostly one.
type ids struct {
	first int64
	more  *[]int64
}

// Mode is how a client tracks; it is never changed.
type Mode struct {
	BCast, OptIn, OptOut, NoLoop bool
	Redirect                     int64        // the client that gets the messages; 0: itself
	Prefixes                     []string     // that the request named
	own                          *ownPrefixes // with bcast: all that it has
}

// size is how many prefixes a client has to give back, and bytes what they take up.
// The mode may be nil.
func (m *Mode) Size() int {
	if m == nil || m.own == nil {
		return 0
	}
	return int(m.own.n.Load())
}

func (m *Mode) Bytes() int64 {
	if m == nil || m.own == nil {
		return 0
	}
	return m.own.bytes.Load()
}

// texts returns the prefixes of a client in broadcasting mode, in order.
func (m *Mode) Texts() (all []string) {
	if m.own != nil {
		m.own.sorted.Each(func(p string) { all = append(all, p) })
	}
	return all
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
func (t *Tracker) Start(c Client, m *Mode) {
	old := c.Tracking().Mode()
	if old == nil {
		t.mu.Lock()
		if t.clients++; t.clients == 1 {
			t.table.Store(&table{shards: make([]map[string]ids, t.db.Shards())})
		}
		t.mu.Unlock()
	}
	if m.BCast {
		if m.own = new(ownPrefixes); old != nil {
			m.own = old.own
		}
		if len(m.Prefixes) == 0 && m.own.n.Load() == 0 {
			m.Prefixes = []string{""}
		}
		t.addPrefixes(c, m.own, m.Prefixes)
		m.Prefixes = nil
	}
	c.Tracking().mode.Store(m)
	c.Tracking().broken.Store(false)
}

// stop ends a session's tracking, if there is any.
func (t *Tracker) Stop(c Client) {
	m := c.Tracking().Mode()
	if m == nil {
		return
	}
	c.Tracking().mode.Store(nil)
	c.Tracking().broken.Store(false)
	if m.BCast {
		t.dropPrefixes(m.own)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clients--; t.clients > 0 {
		return
	}
	tab := t.table.Swap(nil)
	t.db.Charge(-tab.bytes.Swap(-1))
}

// inSlices calls f, with the table locked, for n steps of work, some at a time.
func (p *prefixTable) inSlices(n int, f func(i int)) {
	for i := 0; i < n; {
		p.mu.Lock()
		for end := min(n, i+prefixSlice); i < end; i++ {
			f(i)
		}
		p.used.Store(len(p.byName) > 0)
		p.mu.Unlock()
	}
}

func (t *Tracker) addPrefixes(c Client, own *ownPrefixes, prefixes []string) {
	tab := &t.table.Load().prefixes
	tab.inSlices(len(prefixes), func(i int) {
		if !own.sorted.Insert(prefixes[i]) {
			return
		}
		p := tab.byName[prefixes[i]]
		if p == nil {
			if tab.byName == nil {
				tab.byName = map[string]*prefixTrackers{}
			}
			p = &prefixTrackers{prefix: prefixes[i]}
			p.index = tab.index.Add(p.prefix, p)
			tab.byName[p.prefix] = p
		}
		x := &prefixTracker{c: c, of: p, at: len(p.clients)}
		p.clients = append(p.clients, x)
		own.list = append(own.list, x)
		t.chargePrefix(own, x, 1)
	})
}

// chargePrefix counts one more of a client's prefixes, or one less.
func (t *Tracker) chargePrefix(own *ownPrefixes, x *prefixTracker, n int64) {
	bytes := n * (prefixBytes + int64(len(x.of.prefix)))
	own.n.Add(int32(n))
	own.bytes.Add(bytes)
	t.db.Charge(bytes)
}

func (t *Tracker) dropPrefixes(own *ownPrefixes) {
	tab := &t.table.Load().prefixes
	tab.inSlices(len(own.list), func(i int) {
		x := own.list[i]
		p := x.of
		if p.clients = prefixes.SwapRemove(p.clients, x.at, func(moved *prefixTracker, at int) { moved.at = at }); len(p.clients) == 0 {
			delete(tab.byName, p.prefix)
			tab.index.Remove(p.index)
		}
		t.chargePrefix(own, x, -1)
	})
	own.list, own.sorted = nil, prefixes.Set{}
}

// sizes returns how many clients track, and how many keys, ids and prefixes there
// are.
func (t *Tracker) Sizes() (clients, keys, items, prefixes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tab := t.table.Load(); tab != nil {
		keys, items = tab.keys.Load(), tab.items.Load()
		tab.prefixes.mu.RLock()
		prefixes = int64(len(tab.prefixes.byName))
		tab.prefixes.mu.RUnlock()
	}
	return int64(t.clients), keys, items, prefixes
}

// read notes that a client has read a key in a transaction, which holds the key's shard
// still; where it does not, the client gets the message at once.
func (t *Tracker) Read(tx *engine.Tx, c Client, key []byte) {
	tab := t.table.Load()
	switch {
	case tab == nil:
	case tx.Holds(key):
		t.add(tab, tx, key, c.ID())
	default: // it may have changed since it was read
		t.tell(c.ID(), nil, key)
	}
}

// add notes one key, and makes room for it where the table is full.
func (t *Tracker) add(tab *table, tx *engine.Tx, key []byte, id int64) {
	i := tx.ShardOf(key)
	m := tab.shards[i]
	if m == nil {
		m = map[string]ids{}
		tab.shards[i] = m
	}
	s, ok := m[string(key)]
	switch {
	case !ok:
		if limit := t.limit.Load(); limit > 0 && tab.keys.Load() >= limit {
			t.shrink(tab, m, limit-1)
		}
		m[string(key)] = ids{first: id}
		tab.keys.Add(1)
		t.charge(tab, trackedKeyBytes+int64(len(key)))
	case s.has(id):
		return
	case s.more == nil:
		s.more = &[]int64{id}
		m[string(key)] = s
		t.charge(tab, trackedIDBytes)
	default:
		if l := *s.more; len(l) >= manyIDs && len(l) == cap(l) {
			t.prune(tab, s.more)
		}
		*s.more = append(*s.more, id)
		t.charge(tab, trackedIDBytes)
	}
	tab.items.Add(1)
}

// manyIDs is from how many clients of a key on those are looked for that are gone, each
// time before the list grows: clients that come, read a key that does not change, and go,
// would make it ever longer.
const manyIDs = 64

// prune takes clients out of a list that are gone.
func (t *Tracker) prune(tab *table, list *[]int64) {
	n := len(*list)
	*list = slices.DeleteFunc(*list, func(id int64) bool { return t.host.Client(id) == nil })
	gone := int64(n - len(*list))
	tab.items.Add(-gone)
	t.charge(tab, -gone*trackedIDBytes)
}

// shrinkKeys is how many keys one read takes out of a table that is too large:
// more than it adds, so that a bound that was lowered is reached.
const shrinkKeys = 100

// shrink invalidates keys of a shard, as they come, until the table holds no more
// than limit. Where a shard has none to give, the table exceeds its bound, by a
// key for each shard at most.
func (t *Tracker) shrink(tab *table, m map[string]ids, limit int64) {
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

// lower has a lowered bound hold, some keys of each shard at a time, so that others get the
// shards in between.
func (t *Tracker) Lower() {
	tx := t.db.NewTx()
	for more := true; more; {
		more = false
		tx.LockAll(0)
		limit := t.limit.Load()
		if tab := t.table.Load(); tab != nil && limit > 0 {
			for _, m := range tab.shards {
				t.shrink(tab, m, limit)
			}
			more = tab.keys.Load() > limit
		}
		tx.Unlock()
	}
}

// forgotten settles that an entry is gone: it tells those who read the key.
func (t *Tracker) forgotten(tab *table, s ids, caller Client, key []byte) {
	tab.keys.Add(-1)
	tab.items.Add(-s.len())
	t.charge(tab, -trackedKeyBytes-int64(len(key))-(s.len()-1)*trackedIDBytes)
	s.each(func(id int64) { t.tell(id, caller, key) })
}

// modified is called when a key was changed, came or went, with its shard locked.
func (t *Tracker) Modified(tx *engine.Tx, key []byte) {
	tab := t.table.Load()
	if tab == nil {
		return
	}
	if tab.prefixes.used.Load() {
		t.collect(tx, &tab.prefixes, key)
	}
	m := tab.shards[tx.ShardOf(key)]
	if len(m) == 0 {
		return
	}
	if s, ok := m[string(key)]; ok {
		delete(m, string(key))
		caller, _ := tx.Caller().(Client)
		t.forgotten(tab, s, caller, key)
	}
}

// flushed is called when databases were emptied, with all shards locked.
func (t *Tracker) Flushed() {
	tab := t.table.Load()
	if tab == nil {
		return
	}
	clear(tab.shards)
	tab.keys.Store(0)
	tab.items.Store(0)
	t.charge(tab, -max(tab.bytes.Load(), 0))
	for _, c := range t.host.Clients() {
		if m := c.Tracking().Mode(); m != nil {
			t.send(c, m, nil)
		}
	}
}

// tell invalidates a key for a client that has read it, if it still tracks.
// caller is who changed the key.
func (t *Tracker) tell(id int64, caller Client, key []byte) {
	c := t.host.Client(id)
	if c == nil {
		return
	}
	m := c.Tracking().Mode()
	if m == nil || m.BCast || m.NoLoop && c == caller {
		return
	}
	t.send(c, m, [][]byte{key})
}

// InvalidateChannel is where RESP2 clients subscribe for the messages of others.
const InvalidateChannel = "__redis__:invalidate"

// send queues an invalidation of keys, nil for all, to a client or to the one that
// gets its messages. A client with RESP2 can only be that, and must be subscribed
// to something.
func (t *Tracker) send(c Client, m *Mode, keys [][]byte) {
	to := c
	if m.Redirect != 0 {
		if to = t.host.Client(m.Redirect); to == nil {
			t.broken(c, m)
			return
		}
	}
	w := resp.Writer{Proto: 2}
	switch {
	case to.RESP3():
		w.Proto = 3
		w.Push(2)
		w.BulkString("invalidate")
	case to != c && to.Subscribed():
		w.Array(3)
		w.BulkString("message")
		w.BulkString(InvalidateChannel)
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
	to.Push(w.Buf)
}

// broken says that the client is gone that was to get c's messages.
func (t *Tracker) broken(c Client, m *Mode) {
	c.Tracking().broken.Store(true)
	if c.RESP3() {
		w := resp.Writer{Proto: 3}
		w.Push(2)
		w.BulkString("tracking-redir-broken")
		w.Int(m.Redirect)
		c.Push(w.Buf)
	}
}

// broadcast gathers the keys that a transaction changes, for those who track by
// prefix: each prefix makes one message.
type broadcast struct {
	t        *Tracker
	prefixes *prefixTable
	keys     map[*prefixTrackers]map[string]bool
}

// collect adds a key to the broadcast of its transaction.
func (t *Tracker) collect(tx *engine.Tx, prefixes *prefixTable, key []byte) {
	b, _ := tx.Ending().(*broadcast)
	prefixes.mu.RLock()
	defer prefixes.mu.RUnlock()
	prefixes.index.Each(key, func(p *prefixTrackers) {
		if len(p.prefix) > len(key) || p.prefix != string(key[:len(p.prefix)]) {
			return
		}
		if b == nil {
			b = &broadcast{t: t, prefixes: prefixes, keys: map[*prefixTrackers]map[string]bool{}}
			tx.OnEnd(b)
		}
		if b.keys[p] == nil {
			b.keys[p] = map[string]bool{}
		}
		b.keys[p][string(key)] = true
	})
}

// End implements engine.Ending: it queues the messages.
func (b *broadcast) End(tx *engine.Tx) {
	caller, _ := tx.Caller().(Client)
	hit := slices.SortedFunc(maps.Keys(b.keys), func(x, y *prefixTrackers) int { return strings.Compare(x.prefix, y.prefix) })
	for _, p := range hit {
		keys := make([][]byte, 0, len(b.keys[p]))
		for k := range b.keys[p] {
			keys = append(keys, []byte(k))
		}
		sort.Slice(keys, func(i, j int) bool { return string(keys[i]) < string(keys[j]) })
		for _, c := range b.prefixes.clientsOf(p) {
			if m := c.Tracking().Mode(); m != nil && m.BCast && !(m.NoLoop && c == caller) {
				if readable := c.Readable(keys); len(readable) > 0 {
					b.t.send(c, m, readable)
				}
			}
		}
	}
}

// clientsOf returns the clients that want a prefix.
func (p *prefixTable) clientsOf(x *prefixTrackers) []Client {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]Client, len(x.clients))
	for i, c := range x.clients {
		all[i] = c.c
	}
	return all
}

// tracks reports whether reads are to be remembered, said being whether CLIENT
// CACHING was.
func (m *Mode) Tracks(said bool) bool {
	return m != nil && !m.BCast && !(m.OptIn && !said) && !(m.OptOut && said)
}

// check reports what does not go together: among the options, and with how the
// client tracks already.
func (m *Mode) Check(old *Mode) error {
	switch {
	case !m.BCast && len(m.Prefixes) > 0:
		return errors.New("PREFIX option requires BCAST mode to be enabled")
	case old != nil && old.BCast != m.BCast:
		return errors.New("You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.")
	case m.BCast && (m.OptIn || m.OptOut):
		return errors.New("OPTIN and OPTOUT are not compatible with BCAST")
	case m.OptIn && m.OptOut:
		return errors.New("You can't specify both OPTIN mode and OPTOUT mode")
	case old != nil && (m.OptIn && old.OptOut || m.OptOut && old.OptIn):
		return errors.New("You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.")
	case m.BCast:
		return m.collides(old)
	}
	return nil
}

// collides reports prefixes that overlap: the client would get a key twice. It is the
// first that overlaps one which the client has, or another of the request's. Those that
// the client has do not overlap: only the neighbours of a prefix in their order can.
func (m *Mode) collides(old *Mode) error {
	i, j, found := prefixes.FirstOverlap(m.Prefixes)
	for k, p := range m.Prefixes {
		if old != nil && old.own != nil {
			before, from, hasBefore, hasFrom := old.own.sorted.Around(p)
			switch {
			case hasBefore && prefixes.Overlap(p, before):
				return errOverlap(p, "an existing", before)
			case hasFrom && from != p && prefixes.Overlap(p, from):
				return errOverlap(p, "an existing", from)
			}
		}
		if found && k == i {
			return errOverlap(p, "another provided", m.Prefixes[j])
		}
	}
	return nil
}

func errOverlap(p, which, q string) error {
	return errors.New("Prefix '" + p + "' overlaps with " + which + " prefix '" + q + "'. Prefixes for a single client must not overlap.")
}
