package tracking

import (
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/prefixes"
	"github.com/ebbdb/ebb/internal/wire"
)

// Tracker records which client has read which key and which prefixes a client tracks, and
// sends invalidations. Init prepares one. Its methods are safe for concurrent use, each
// client's Start and Stop by one goroutine at a time.
//
// Invariant: table is nil unless a client tracks. A change of a key then costs one load.
type Tracker struct {
	db    *engine.DB
	host  Host
	table atomic.Pointer[table]
	limit atomic.Int64 // the greatest number of tracked keys; 0: no limit

	mu      sync.Mutex // guards what follows, and changes of table
	clients int
}

// Client is a client of the server as tracking sees it. Any goroutine may call its methods.
type Client interface {
	ID() int64
	// Push queues a message, encoded for the client's protocol, without waiting. The engine
	// may hold shards meanwhile.
	Push(msg []byte)
	// RESP3 reports whether the client's protocol is RESP3.
	RESP3() bool
	// Subscribed reports whether the client has a subscription of pub/sub.
	Subscribed() bool
	// Readable returns those of the keys that the client's user may read. It does not change
	// keys, and may return it.
	Readable(keys [][]byte) [][]byte
	// Tracking returns the client's state, always the same.
	Tracking() *State
}

// Host finds clients.
type Host interface {
	// Client returns the client with an id, nil if it has disconnected.
	Client(id int64) Client
	// Clients returns all clients, in no order.
	Clients() []Client
}

// State is the tracking state of a client. The zero value means that tracking is off.
type State struct {
	mode   atomic.Pointer[Mode] // nil: off
	broken atomic.Bool          // the client to which messages are redirected has disconnected
}

// Mode returns how the client tracks, nil if it does not.
func (s *State) Mode() *Mode { return s.mode.Load() }

// Redirect returns the id of the client that gets the messages: 0 for the client itself, -1 if it does not track.
func (s *State) Redirect() int64 {
	if m := s.Mode(); m != nil {
		return m.Redirect
	}
	return -1
}

// Broken reports whether the client to which the messages are redirected is gone.
func (s *State) Broken() bool { return s.broken.Load() }

// Init prepares a tracker for an engine.
func (t *Tracker) Init(db *engine.DB, host Host) { t.db, t.host = db, host }

// Active reports whether a client tracks.
func (t *Tracker) Active() bool { return t.table.Load() != nil }

// SetLimit sets the greatest number of tracked keys, 0 for no limit. Lower applies a lower
// limit to the keys that are tracked already.
func (t *Tracker) SetLimit(n int64) { t.limit.Store(n) }

// table holds the keys that clients have read. It exists while a client tracks.
type table struct {
	shards   []map[string]ids // by shard; the engine's shard locks guard them
	keys     atomic.Int64
	items    atomic.Int64 // ids of all keys
	bytes    atomic.Int64 // estimated memory; -1: the table is no longer in use
	prefixes prefixTable
}

// The estimated memory of a tracked key without its name, and of each further client that
// has read the key.
const (
	trackedKeyBytes = 64
	trackedIDBytes  = 12
)

// charge counts bytes of the table as used memory, unless the table is no longer in use.
func (t *Tracker) charge(tab *table, n int64) {
	for {
		old := tab.bytes.Load()
		if old < 0 {
			return
		}
		if tab.bytes.CompareAndSwap(old, old+n) {
			t.db.ChargeApart(n)
			return
		}
	}
}

// prefixTable holds the clients in broadcasting mode by prefix. Methods that add or remove
// many prefixes release the lock after each prefixSlice of them.
type prefixTable struct {
	used atomic.Bool // the table has prefixes: only then a change takes the lock

	mu     sync.RWMutex // guards what follows
	byName map[string]*prefixTrackers
	index  prefixes.Index[*prefixTrackers]
}

// prefixTrackers are the clients that have asked for a prefix.
type prefixTrackers struct {
	prefix  string
	clients []*prefixTracker
	index   *prefixes.Entry[*prefixTrackers]
}

// prefixTracker is one client of prefixTrackers.
type prefixTracker struct {
	c  Client
	of *prefixTrackers
	at int
}

// prefixSlice is the number of prefixes for which a method holds the lock at once.
const prefixSlice = 256

// prefixBytes estimates the memory of a client's prefix without its text.
const prefixBytes = 360

// ownPrefixes are the prefixes of one client in broadcasting mode. Only the client's own
// goroutine uses them, except for n and bytes.
type ownPrefixes struct {
	sorted prefixes.Set
	list   []*prefixTracker
	n      atomic.Int32
	bytes  atomic.Int64
}

// ids are the ids of the clients that have read a key: mostly one.
type ids struct {
	first int64
	more  *[]int64
}

// Mode is the way in which a client tracks: the options of CLIENT TRACKING. Nothing changes a Mode after
// Start.
type Mode struct {
	BCast, OptIn, OptOut, NoLoop bool
	Redirect                     int64        // the id of the client that gets the messages; 0: the client itself
	Prefixes                     []string     // the prefixes of the request
	own                          *ownPrefixes // all prefixes of the client, with BCast
}

// Size returns how many prefixes the client has: Stop costs O(1) for each. The mode may be
// nil.
func (m *Mode) Size() int {
	if m == nil || m.own == nil {
		return 0
	}
	return int(m.own.n.Load())
}

// Bytes estimates the memory of the client's prefixes. The mode may be nil.
func (m *Mode) Bytes() int64 {
	if m == nil || m.own == nil {
		return 0
	}
	return m.own.bytes.Load()
}

// Texts returns the prefixes of a client in broadcasting mode, in order.
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

// Start turns tracking on for a client, or changes how the client tracks. The caller has
// called Check. It costs O(1) for each prefix of m.
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

// Stop turns tracking off for a client, if it is on.
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
	t.db.ChargeApart(-tab.bytes.Swap(-1))
}

// inSlices calls f for 0 to n-1 with the lock held. It releases the lock after each
// prefixSlice calls.
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

// chargePrefix counts one prefix more of a client, or with n = -1 one less.
func (t *Tracker) chargePrefix(own *ownPrefixes, x *prefixTracker, n int64) {
	bytes := n * (prefixBytes + int64(len(x.of.prefix)))
	own.n.Add(int32(n))
	own.bytes.Add(bytes)
	t.db.ChargeApart(bytes)
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

// Sizes returns how many clients track, and how many keys, ids of keys and prefixes the
// tracker has.
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

// Read records that a client has read a key in a transaction. If the transaction no longer
// holds the key's shard, the client gets the invalidation at once; an extra
// message is harmless. The caller has checked Mode.Tracks.
func (t *Tracker) Read(tx *engine.Tx, c Client, key []byte) {
	tab := t.table.Load()
	switch {
	case tab == nil:
	case tx.Holds(key):
		t.add(tab, tx, key, c.ID())
	default: // the key may have changed since the client read it
		t.tell(c.ID(), nil, key)
	}
}

// add records one key. If the table is full, it removes other keys first.
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
		} else if t.db.ApartFull() {
			t.shrink(tab, m, tab.keys.Load()-2)
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

// manyIDs is the length of a key's list from which on add removes disconnected clients
// before the list grows. Without that, clients that connect, read a key that does not
// change and leave would make the list ever longer.
const manyIDs = 64

// prune removes the clients that are gone from a list.
func (t *Tracker) prune(tab *table, list *[]int64) {
	n := len(*list)
	*list = slices.DeleteFunc(*list, func(id int64) bool { return t.host.Client(id) == nil })
	gone := int64(n - len(*list))
	tab.items.Add(-gone)
	t.charge(tab, -gone*trackedIDBytes)
}

// shrinkKeys is the most keys that one read removes from a table that is too large. It is
// more than the one that a read adds, so that the table reaches a lowered limit.
const shrinkKeys = 100

// shrink invalidates keys of a shard, in the order of the map, until the table has at most
// limit keys. If the shard has too few keys, the table exceeds its limit: by one key for
// each shard at most.
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

// Lower applies a lowered limit: it invalidates keys until the table has few enough. It
// locks all shards for some keys at a time, and other commands run in between.
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

// forgotten accounts for a removed entry and sends its invalidation to the clients in it.
func (t *Tracker) forgotten(tab *table, s ids, caller Client, key []byte) {
	tab.keys.Add(-1)
	tab.items.Add(-s.len())
	t.charge(tab, -trackedKeyBytes-int64(len(key))-(s.len()-1)*trackedIDBytes)
	s.each(func(id int64) { t.tell(id, caller, key) })
}

// Modified sends the invalidations of a key that was created, changed or deleted. The
// engine's hook calls it, with the key's shard locked.
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

// Flushed tells all clients that track to forget all keys. The engine's hook calls it when
// databases were emptied, with all shards locked.
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

// tell sends the invalidation of a key to a client that has read it, if the client still
// tracks. caller is the client that changed the key, nil for none.
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

// InvalidateChannel is the channel to which a RESP2 client subscribes to get redirected
// messages.
const InvalidateChannel = "__redis__:invalidate"

// send queues an invalidation of keys, nil for all keys, for a client or for the one to
// which its messages are redirected. A RESP2 client gets only redirected messages, and only
// while it is subscribed to a channel.
func (t *Tracker) send(c Client, m *Mode, keys [][]byte) {
	to := c
	if m.Redirect != 0 {
		if to = t.host.Client(m.Redirect); to == nil {
			t.redirectionBroken(c, m)
			return
		}
	}
	w := wire.Writer{Proto: 2}
	switch {
	case to.RESP3():
		w.Proto = 3
		w.Push(2)
		w.BulkString("invalidate")
	case m.Redirect != 0 && to.Subscribed():
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

// redirectionBroken tells a client that the one to which its messages are redirected is gone.
func (t *Tracker) redirectionBroken(c Client, m *Mode) {
	c.Tracking().broken.Store(true)
	if c.RESP3() {
		w := wire.Writer{Proto: 3}
		w.Push(2)
		w.BulkString("tracking-redir-broken")
		w.Int(m.Redirect)
		c.Push(w.Buf)
	}
}

// broadcast collects the keys that a transaction changes, by prefix. Each client of a
// prefix gets one message for all of them.
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

// End implements engine.Ending. It queues the messages.
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

// clientsOf returns the clients of a prefix.
func (p *prefixTable) clientsOf(x *prefixTrackers) []Client {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]Client, len(x.clients))
	for i, c := range x.clients {
		all[i] = c.c
	}
	return all
}

// Tracks reports whether the tracker must record the reads of a command. caching is true
// if CLIENT CACHING preceded the command. The mode may be nil.
func (m *Mode) Tracks(caching bool) bool {
	return m != nil && !m.BCast && !(m.OptIn && !caching) && !(m.OptOut && caching)
}

// Check returns an error if options of the mode exclude each other, or if the mode does
// not fit old, the client's present mode; nil: the client does not track.
func (m *Mode) Check(old *Mode) error {
	switch {
	case !m.BCast && len(m.Prefixes) > 0:
		return errors.New("PREFIX option requires BCAST mode to be enabled")
	case old != nil && old.BCast != m.BCast:
		return errors.New("You can't switch BCAST mode on/off before disabling tracking for this client, and then " +
			"re-enabling it with a different mode.")
	case m.BCast && (m.OptIn || m.OptOut):
		return errors.New("OPTIN and OPTOUT are not compatible with BCAST")
	case m.OptIn && m.OptOut:
		return errors.New("You can't specify both OPTIN mode and OPTOUT mode")
	case old != nil && (m.OptIn && old.OptOut || m.OptOut && old.OptIn):
		return errors.New("You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then " +
			"re-enabling it with a different mode.")
	case m.BCast:
		return m.collides(old)
	}
	return nil
}

// collides returns an error for the first prefix that overlaps one of the client's or
// another one of the request: the client would get a key twice. The client's prefixes do
// not overlap, so that only the two neighbours of a prefix in their order can overlap it.
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
