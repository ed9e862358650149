package commands_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// heldBy is a holder in the model, asking is a request for a lock or for permits.
type heldBy struct {
	owner    string
	token    int64
	deadline int64 // ms
	count    int64
}

type asking struct {
	conn   int
	owner  string
	lease  int64
	shared bool
	count  int64
	limit  int64
	until  int64 // ms; 0: for ever
}

// heldKey is a lock or a semaphore in the model.
type heldKey struct {
	name    string
	sem     bool
	shared  bool
	holders []heldBy
	line    []asking
}

// lockModel holds an engine with connections, and a model of its locks and semaphores: slices without any
// index.
type lockModel struct {
	e     *transcript.Engine
	keys  []*heldKey
	fence int64
	waits map[int]bool     // the connections that wait
	owed  map[int][]string // the replies that each connection must still receive
}

func TestLocksAndSemaphoresBehaveAsTheirModel(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		e, err := transcript.NewEngine()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		m := &lockModel{e: e, waits: map[int]bool{}, owed: map[int][]string{},
			keys: []*heldKey{{name: "k"}, {name: "l"}, {name: "s", sem: true}}}
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"acquire": m.acquire,
			"wait":    m.wait,
			"renew":   m.renew,
			"release": m.release,
			"advance": m.advance,
			"del":     m.del,
			"hangup":  m.hangup,
		})
		if err := modeltest.CheckEffects(e.DB); err != nil {
			t.Fatal(err)
		}
	})
}

func (m *lockModel) micros() int64 { return m.e.Clock.Micros() }
func (m *lockModel) millis() int64 { return m.micros() / 1000 }

func (m *lockModel) token() int64 {
	m.fence = max(m.fence+1, m.micros())
	return m.fence
}

func (k *heldKey) find(owner string) int {
	return slices.IndexFunc(k.holders, func(h heldBy) bool { return h.owner == owner })
}

func (k *heldKey) taken() (n int64) {
	for _, h := range k.holders {
		n += h.count
	}
	return n
}

func (k *heldKey) info() string {
	if k.sem {
		return "SEM.INFO"
	}
	return "LOCK.INFO"
}

// ending returns the place in line of the request whose wait ends at that time, or -1.
func (k *heldKey) ending(at int64) int {
	return slices.IndexFunc(k.line, func(a asking) bool { return a.until == at })
}

// try grants a request if that is possible. It returns the token, "(nil)" for a refusal, and "" if the
// request must wait.
func (m *lockModel) try(k *heldKey, a asking, behind bool) string {
	i := k.find(a.owner)
	switch {
	case k.sem && i >= 0 && k.holders[i].count >= a.count:
	case k.sem:
		more := a.count
		if i >= 0 {
			more -= k.holders[i].count
		}
		if behind || k.taken()+more > a.limit {
			return ""
		}
		if i >= 0 {
			k.holders[i].count = a.count
		}
	case i >= 0 && k.shared && !a.shared && len(k.holders) > 1:
		return "(nil)"
	case i >= 0 && k.shared && !a.shared:
		k.holders[i].token = m.token()
		k.shared = false
	case i >= 0:
		k.shared = k.shared || a.shared
	case behind || len(k.holders) > 0 && !(k.shared && a.shared):
		return ""
	default:
		k.shared = a.shared
	}
	if i < 0 {
		i = len(k.holders)
		k.holders = append(k.holders, heldBy{owner: a.owner, token: m.token(), count: max(a.count, 1)})
	}
	k.holders[i].deadline = m.millis() + a.lease
	return fmt.Sprintf("(integer) %d", k.holders[i].token)
}

// serve grants the requests in line, in order, until the first one must wait.
func (m *lockModel) serve(k *heldKey) {
	for len(k.line) > 0 {
		a := k.line[0]
		got := m.try(k, a, false)
		if got == "" {
			return
		}
		k.line = k.line[1:]
		m.answer(a.conn, got)
	}
}

func (m *lockModel) answer(conn int, text string) {
	delete(m.waits, conn)
	m.owed[conn] = append(m.owed[conn], text)
}

func (m *lockModel) drawKey(t *rapid.T) *heldKey {
	return m.keys[rapid.IntRange(0, len(m.keys)-1).Draw(t, "key")]
}

func (m *lockModel) request(t *rapid.T, k *heldKey) (asking, []string) {
	a := asking{conn: 1, owner: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "owner"),
		lease: int64(rapid.IntRange(1, 60).Draw(t, "lease"))}
	if k.sem {
		a.limit = int64(rapid.IntRange(1, 6).Draw(t, "limit"))
		a.count = int64(rapid.IntRange(1, int(a.limit)).Draw(t, "count"))
		return a, []string{"SEM.ACQUIRE", k.name, a.owner, fmt.Sprint(a.limit), fmt.Sprint(a.lease), "COUNT", fmt.Sprint(a.count)}
	}
	words := []string{"LOCK.ACQUIRE", k.name, a.owner, fmt.Sprint(a.lease)}
	if a.shared = rapid.Bool().Draw(t, "shared"); a.shared {
		words = append(words, "SHARED")
	}
	return a, words
}

func text(v resp.Value) string {
	if v.IsNull() {
		return "(nil)"
	}
	if v.Kind == resp.KindInt {
		return fmt.Sprintf("(integer) %d", v.Int)
	}
	return v.String()
}

func (m *lockModel) do(t *rapid.T, want string, words ...string) {
	v, err := m.e.Do(1, words...)
	if err != nil || text(v) != want {
		t.Fatalf("%q: %s, %v, want %s", words, text(v), err, want)
	}
}

func (m *lockModel) acquire(t *rapid.T) {
	k := m.drawKey(t)
	a, words := m.request(t, k)
	want := m.try(k, a, len(k.line) > 0)
	if want == "" {
		want = "(nil)"
	}
	m.do(t, want, words...)
	m.serve(k) // others in line may share the lock now
}

func (m *lockModel) wait(t *rapid.T) {
	conn := rapid.IntRange(2, 9).Draw(t, "conn")
	if m.waits[conn] {
		t.Skip("it waits")
	}
	k := m.drawKey(t)
	a, words := m.request(t, k)
	a.conn = conn
	wait := int64(rapid.IntRange(0, 80).Draw(t, "wait"))
	for wait > 0 && m.ends(m.millis()+wait) {
		wait++ // the order of two at one instant is undefined
	}
	if wait > 0 {
		a.until = m.millis() + wait
	}
	if got := m.try(k, a, len(k.line) > 0); got != "" {
		m.answer(conn, got)
	} else {
		k.line = append(k.line, a)
		m.waits[conn] = true
	}
	if err := m.e.Send(conn, append(words, "WAIT", fmt.Sprint(wait))); err != nil {
		t.Fatal(err)
	}
	m.serve(k)
}

// ends reports whether a client's wait ends at that time.
func (m *lockModel) ends(at int64) bool {
	return slices.ContainsFunc(m.keys, func(k *heldKey) bool { return k.ending(at) >= 0 })
}

func (m *lockModel) renew(t *rapid.T) {
	k := m.drawKey(t)
	a, _ := m.request(t, k)
	i, token := k.find(a.owner), int64(5)
	want := fmt.Sprintf("LOST the lease on '%s' has expired", k.name)
	if i >= 0 {
		token = k.holders[i].token
		k.holders[i].deadline = m.millis() + a.lease
		want = "(integer) 1"
	}
	if k.sem {
		m.do(t, want, "SEM.RENEW", k.name, a.owner, fmt.Sprint(a.lease))
	} else {
		m.do(t, want, "LOCK.RENEW", k.name, a.owner, strconv.FormatInt(token, 10), fmt.Sprint(a.lease))
	}
}

func (m *lockModel) release(t *rapid.T) {
	k := m.drawKey(t)
	owner := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "owner")
	n := int64(rapid.IntRange(1, 7).Draw(t, "n"))
	i, token, want := k.find(owner), int64(5), "(integer) 0"
	if i >= 0 {
		token, want = k.holders[i].token, "(integer) 1"
		if k.holders[i].count -= n; !k.sem || k.holders[i].count <= 0 {
			k.holders = slices.Delete(k.holders, i, i+1)
		}
	}
	m.serve(k)
	if k.sem {
		m.do(t, want, "SEM.RELEASE", k.name, owner, "COUNT", fmt.Sprint(n))
	} else {
		m.do(t, want, "LOCK.RELEASE", k.name, owner, strconv.FormatInt(token, 10))
	}
}

func (m *lockModel) del(t *rapid.T) {
	k := m.drawKey(t)
	want := fmt.Sprintf("(integer) %d", min(len(k.holders), 1))
	k.holders = nil
	m.serve(k)
	m.do(t, want, "DEL", k.name)
}

func (m *lockModel) hangup(t *rapid.T) {
	conn := rapid.IntRange(2, 9).Draw(t, "conn")
	if err := m.e.Hangup(conn); err != nil {
		t.Fatal(err)
	}
	delete(m.waits, conn)
	for _, k := range m.keys {
		k.line = slices.DeleteFunc(k.line, func(a asking) bool { return a.conn == conn })
		m.serve(k)
	}
}

// advance lets time pass millisecond by millisecond, in the engine and in the model.
func (m *lockModel) advance(t *rapid.T) {
	for range rapid.IntRange(1, 50).Draw(t, "ms") {
		if err := m.e.Advance(time.Millisecond); err != nil {
			t.Fatal(err)
		}
		now := m.millis()
		var served []*heldKey
		for _, k := range m.keys {
			n := len(k.holders)
			k.holders = slices.DeleteFunc(k.holders, func(h heldBy) bool { return now > h.deadline })
			if len(k.holders) < n || k.ending(now) >= 0 {
				served = append(served, k)
			}
		}
		if len(served) > 1 {
			m.asServed(t, served)
		}
		for _, k := range served {
			m.serve(k)
			if i := k.ending(now); i >= 0 {
				conn := k.line[i].conn
				k.line = slices.Delete(k.line, i, i+1)
				m.answer(conn, "(nil)")
				m.serve(k)
			}
		}
	}
}

// asServed puts keys in the order in which the engine served them. Within one millisecond that order is
// undefined; the tokens reveal it.
func (m *lockModel) asServed(t *rapid.T, keys []*heldKey) {
	newest := map[*heldKey]int64{}
	for _, k := range keys {
		v, err := m.e.Do(1, k.info(), k.name)
		if err != nil {
			t.Fatal(err)
		}
		if v.IsNull() {
			continue
		}
		for _, h := range v.Elems[3].Elems {
			for i := 1; i < len(h.Elems); i++ {
				newest[k] = max(newest[k], h.Elems[i].Int) // the token, which is the largest number here
			}
		}
	}
	slices.SortStableFunc(keys, func(a, b *heldKey) int { return cmp.Compare(newest[a], newest[b]) })
}

func (m *lockModel) check(t *rapid.T) {
	for conn := 2; conn <= 9; conn++ {
		for _, want := range m.owed[conn] {
			v, ok := m.e.Next(conn)
			if !ok || text(v) != want {
				t.Fatalf("connection %d got %s, want %s", conn, text(v), want)
			}
		}
		delete(m.owed, conn)
		if v, ok := m.e.Next(conn); ok {
			t.Fatalf("connection %d got %s", conn, text(v))
		}
	}
	for _, k := range m.keys {
		m.compare(t, k)
	}
	if err := m.e.DB.Check(); err != nil {
		t.Fatal(err)
	}
}

// compare compares INFO of a key with the model.
func (m *lockModel) compare(t *rapid.T, k *heldKey) {
	v, err := m.e.Do(1, k.info(), k.name)
	switch {
	case err != nil:
		t.Fatal(err)
	case len(k.holders) == 0 && v.IsNull() && len(k.line) == 0:
		return
	case len(k.holders) == 0 || v.IsNull():
		t.Fatalf("%s says %v, want %+v", k.name, v, k)
	}
	var got, want []string
	for _, h := range v.Elems[3].Elems {
		got = append(got, history.Flat(h))
	}
	for _, h := range k.holders {
		left := h.deadline - m.millis()
		if k.sem {
			want = append(want, fmt.Sprint(h.owner, " ", h.count, " ", h.token, " ", left))
		} else {
			want = append(want, fmt.Sprint(h.owner, " ", h.token, " ", left))
		}
	}
	for _, w := range v.Elems[5].Elems {
		got = append(got, w.Elems[0].Str)
	}
	for _, a := range k.line {
		want = append(want, a.owner)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %q, want %q", k.name, got, want)
	}
	if mode := v.Elems[1].Str; !k.sem && mode != map[bool]string{false: "exclusive", true: "shared"}[k.shared] {
		t.Fatalf("%s is %s, want %+v", k.name, mode, k)
	}
}
