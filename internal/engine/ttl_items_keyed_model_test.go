package engine

import (
	"errors"
	"time"

	"pgregory.net/rapid"
)

// tally counts the expirations in a model, for comparison with the engine's statistics. Items that died in a
// key that was then deleted as a whole may or may not have been counted.
type tally struct {
	active  bool
	expired int
	unsure  int
	ghosts  map[string]int // dead items of a key that may still be stored
}

func (y *tally) died(key string, n int) {
	if y.ghosts == nil {
		y.ghosts = map[string]int{}
	}
	y.expired += n
	if !y.active {
		y.ghosts[key] += n
	}
}

// lost records that a key was overwritten or deleted.
func (y *tally) lost(key string) {
	y.unsure += y.ghosts[key]
	delete(y.ghosts, key)
}

func (y *tally) moved(from, to string) {
	y.lost(to)
	if n := y.ghosts[from]; n > 0 {
		y.ghosts[to] = n
		delete(y.ghosts, from)
	}
}

// setActive turns active reclaiming on or off.
func (y *tally) setActive(db *DB, on bool) {
	y.active = on
	db.SetActiveExpiry(on)
}

// advanced records that time has passed: active reclaimers have removed the dead items.
func (y *tally) advanced() {
	if y.active {
		y.ghosts = nil
	}
}

// settle lets the engine reclaim all dead data, and compares the counts.
func (y *tally) settle(t *rapid.T, m *containerModel, look func()) {
	y.setActive(m.db, true)
	m.clock.Advance(time.Millisecond)
	look()
	got := m.db.Stats().ExpiredItems
	if got > int64(y.expired) || got < int64(y.expired-y.unsure) {
		t.Fatalf("%d items are counted as expired, want %d, or up to %d less", got, y.expired, y.unsure)
	}
	if err := m.db.Check(); err != nil {
		t.Fatal(err)
	}
}

// drawDeadline draws a deadline that is past, now, or soon.
func drawDeadline(t *rapid.T, now int64) int64 {
	return now + rapid.Int64Range(-1, 40).Draw(t, "in")
}

func drawCondition(t *rapid.T) Condition {
	return rapid.SampledFrom([]Condition{0, 0, IfNone, IfSome, IfLater, IfEarlier}).Draw(t, "condition")
}

func drawOptions(t *rapid.T, now int64) (o ItemOptions) {
	switch rapid.IntRange(0, 3).Draw(t, "time") {
	case 0:
		o.Keep = true
	case 1, 2:
		o.Deadline = drawDeadline(t, now)
	}
	switch rapid.IntRange(0, 5).Draw(t, "only") {
	case 0:
		o.OnlyNew = true
	case 1:
		o.OnlyOld = true
	}
	o.Max = rapid.SampledFrom([]int{0, 0, 0, 1, 4, 8}).Draw(t, "max")
	return o
}

// full reports whether MAXLEN refuses an add.
func full(o ItemOptions, living, fresh int) bool {
	return o.Max > 0 && fresh > 0 && living+fresh > o.Max
}

// jump advances the clock to a deadline, or just beyond.
func jump(t *rapid.T, m *containerModel, deadlines []int64) {
	deadlines = append(deadlines, m.now())
	d := rapid.SampledFrom(deadlines).Draw(t, "deadline") + rapid.Int64Range(0, 1).Draw(t, "beyond")
	m.clock.Advance(time.Duration(max(1, d-m.now())) * time.Millisecond)
}

func drawFields(t *rapid.T) (fields []string, args [][]byte) {
	for range rapid.IntRange(1, 6).Draw(t, "fields") {
		f := drawField(t)
		fields, args = append(fields, f), append(args, []byte(f))
	}
	return fields, args
}

// expireOne applies HEXPIRE or SEXPIRE with that deadline to an item.
func expireOne(there bool, old, deadline, now int64, c Condition) int {
	switch {
	case !there:
		return ItemMissing
	case !c.allows(old, deadline):
		return ItemRefused
	case deadline <= now:
		return ItemOutlived
	}
	return ItemDone
}

func (m *hashModel) hexpire(t *rapid.T) {
	key, d, c := drawHashKey(t), drawDeadline(t, m.now()), drawCondition(t)
	fields, args := drawFields(t)
	h, want := m.of(key), []int(nil)
	for _, f := range fields {
		e, ok := h[f]
		code := expireOne(ok, e.deadline, d, m.now(), c)
		switch code {
		case ItemOutlived:
			delete(h, f)
		case ItemDone:
			h[f] = entry{val: e.val, deadline: d}
		}
		want = append(want, code)
	}
	m.do(func(tx *Tx) {
		check, done := sequence(t, "HExpire", want)
		if err := tx.HExpire([]byte(key), args, d, c, check); err != nil {
			t.Fatal(err)
		}
		done()
	})
}

// sequence returns two functions: check compares its argument with the next expected value, and done verifies
// that there were no more.
func sequence[T comparable](t *rapid.T, name string, want []T) (check func(T), done func()) {
	i := 0
	return func(got T) {
			if i == len(want) || got != want[i] {
				t.Fatalf("%s: item %d is %v, want %v", name, i, got, want)
			}
			i++
		}, func() {
			if i != len(want) {
				t.Fatalf("%s: %d items, want %v", name, i, want)
			}
		}
}

func (m *hashModel) hpersist(t *rapid.T) {
	key := drawHashKey(t)
	fields, args := drawFields(t)
	h, want := m.of(key), []int(nil)
	for _, f := range fields {
		e, ok := h[f]
		switch {
		case !ok:
			want = append(want, ItemMissing)
		case e.deadline == 0:
			want = append(want, ItemUntimed)
		default:
			want = append(want, ItemDone)
			h[f] = entry{val: e.val}
		}
	}
	m.do(func(tx *Tx) {
		check, done := sequence(t, "HPersist", want)
		if err := tx.HPersist([]byte(key), args, check); err != nil {
			t.Fatal(err)
		}
		done()
	})
}

func (m *hashModel) hsetex(t *rapid.T) {
	key, o := drawHashKey(t), drawOptions(t, m.now())
	fields, _ := drawFields(t)
	h, args, fresh, there := m.of(key), [][]byte(nil), map[string]bool{}, 0
	for _, f := range fields {
		args = append(args, []byte(f), []byte(drawHashVal(t)))
		if _, ok := h[f]; ok {
			there++
		} else {
			fresh[f] = true
		}
	}
	past := o.Deadline != 0 && o.Deadline <= m.now()
	want := !(o.OnlyNew && there > 0 || o.OnlyOld && there < len(fields))
	refused := want && !past && full(o, len(h), len(fresh))
	for i, f := range fields {
		switch {
		case !want || refused:
		case past:
			delete(h, f)
		default:
			e := entry{val: string(args[2*i+1]), deadline: o.Deadline}
			if o.Keep {
				e.deadline = h[f].deadline
			}
			h[f] = e
		}
	}
	m.do(func(tx *Tx) {
		got, err := tx.HSetEx([]byte(key), args, o)
		if bound := new(BoundError); errors.As(err, &bound) != refused || !refused && (err != nil || got != want) {
			t.Fatalf("HSetEx = %v, %v, want %v, FULL %v", got, err, want, refused)
		}
	})
}

// taken is a value that a command returned.
type taken struct {
	val string
	ok  bool
}

func (m *hashModel) hgetex(t *rapid.T) {
	key, o := drawHashKey(t), ItemOptions{}
	switch rapid.IntRange(0, 3).Draw(t, "time") {
	case 0:
		o.Persist = true
	case 1, 2:
		o.Deadline = drawDeadline(t, m.now())
	}
	remove := o.Deadline != 0 && o.Deadline <= m.now()
	fields, args := drawFields(t)
	want := m.look(key, fields, func(h map[string]entry, f string) {
		switch {
		case remove:
			delete(h, f)
		case o.Persist || o.Deadline != 0:
			h[f] = entry{val: h[f].val, deadline: o.Deadline}
		}
	})
	m.do(func(tx *Tx) {
		check, done := sequence(t, "HGetEx", want)
		if err := tx.HGetEx([]byte(key), args, o, func(v []byte, ok bool) { check(taken{string(v), ok}) }); err != nil {
			t.Fatal(err)
		}
		done()
	})
}

func (m *hashModel) hgetdel(t *rapid.T) {
	key := drawHashKey(t)
	fields, args := drawFields(t)
	want := m.look(key, fields, func(h map[string]entry, f string) { delete(h, f) })
	m.do(func(tx *Tx) {
		check, done := sequence(t, "HGetDel", want)
		if err := tx.HGetDel([]byte(key), args, func(v []byte, ok bool) { check(taken{string(v), ok}) }); err != nil {
			t.Fatal(err)
		}
		done()
	})
}

// look returns the expected values of fields, and calls then for each that exists.
func (m *hashModel) look(key string, fields []string, then func(h map[string]entry, f string)) (want []taken) {
	h := m.of(key)
	for _, f := range fields {
		e, ok := h[f]
		want = append(want, taken{e.val, ok})
		if ok {
			then(h, f)
		}
	}
	return want
}

func (m *hashModel) lookAtAll() {
	for _, key := range hashKeys {
		m.of(key)
	}
}

func (m *hashModel) jump(t *rapid.T) {
	var all []int64
	for _, key := range hashKeys {
		for _, f := range hashFields {
			if e := m.of(key)[f]; e.deadline != 0 {
				all = append(all, e.deadline)
			}
		}
	}
	jump(t, &m.containerModel, all)
	m.advanced()
}

func (m *setModel) sexpire(t *rapid.T) {
	key, d, c := drawSetKey(t), drawDeadline(t, m.now()), drawCondition(t)
	members, args := drawSetMembers(t)
	s, want := m.of(key), []int(nil)
	for _, x := range members {
		old, ok := s[x]
		code := expireOne(ok, old, d, m.now(), c)
		switch code {
		case ItemOutlived:
			delete(s, x)
		case ItemDone:
			s[x] = d
		}
		want = append(want, code)
	}
	m.do(func(tx *Tx) {
		check, done := sequence(t, "SExpire", want)
		if err := tx.SExpire([]byte(key), args, d, c, check); err != nil {
			t.Fatal(err)
		}
		done()
		m.goneIfEmpty(t, tx, key, 1)
	})
}

func (m *setModel) spersist(t *rapid.T) {
	key := drawSetKey(t)
	members, args := drawSetMembers(t)
	s, want := m.of(key), []int(nil)
	for _, x := range members {
		old, ok := s[x]
		switch {
		case !ok:
			want = append(want, ItemMissing)
		case old == 0:
			want = append(want, ItemUntimed)
		default:
			want = append(want, ItemDone)
			s[x] = 0
		}
	}
	m.do(func(tx *Tx) {
		check, done := sequence(t, "SPersist", want)
		if err := tx.SPersist([]byte(key), args, check); err != nil {
			t.Fatal(err)
		}
		done()
	})
}

func (m *setModel) saddex(t *rapid.T) {
	key, o := drawSetKey(t), drawOptions(t, m.now())
	o.Keep = o.Keep || rapid.IntRange(0, 4).Draw(t, "keep") == 0
	members, args := drawSetMembers(t)
	s, fresh := m.of(key), map[string]bool{}
	for _, x := range members {
		if _, ok := s[x]; !ok && !o.OnlyOld {
			fresh[x] = true
		}
	}
	past := o.Deadline != 0 && o.Deadline <= m.now()
	refused := !past && full(o, len(s), len(fresh))
	for _, x := range members {
		_, there := s[x]
		switch {
		case refused, there && (o.OnlyNew || o.Keep), !there && o.OnlyOld:
		case past:
			delete(s, x)
		default:
			s[x] = o.Deadline
		}
	}
	m.do(func(tx *Tx) {
		added, err := tx.SAddEx([]byte(key), args, o)
		if bound := new(BoundError); errors.As(err, &bound) != refused || !refused && err != nil {
			t.Fatalf("SAddEx: %v, want FULL %v", err, refused)
		}
		if want := len(fresh); !refused && !past && added != want {
			t.Fatalf("SAddEx = %d, want %d", added, want)
		}
		m.goneIfEmpty(t, tx, key, 1)
	})
}

func (m *setModel) lookAtAll() {
	for _, key := range setKeys {
		m.of(key)
	}
}

func (m *setModel) jump(t *rapid.T) {
	var all []int64
	for _, key := range setKeys {
		for _, x := range setMembers {
			if d := m.of(key)[x]; d != 0 {
				all = append(all, d)
			}
		}
	}
	jump(t, &m.containerModel, all)
	m.advanced()
}
