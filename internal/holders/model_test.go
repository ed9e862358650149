package holders_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/holders"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

const latest = 1000 // the last deadline that the test draws

// model is a List beside a slice of its holders.
type model struct {
	list  holders.List
	want  []holders.Holder
	token int64
}

// one draws a holder and its position.
func (m *model) one(t *rapid.T) (i, at int) {
	if len(m.want) == 0 {
		t.Skip("there are no holders")
	}
	i = rapid.IntRange(0, len(m.want)-1).Draw(t, "holder")
	at = m.list.Find(m.want[i].Owner)
	if at < 0 || m.list.Token(at) != m.want[i].Token {
		t.Fatalf("%q is at %d, want the holder %+v", m.want[i].Owner, at, m.want[i])
	}
	return i, at
}

func deadline(t *rapid.T) int64 { return rapid.Int64Range(1, latest).Draw(t, "deadline") }

func (m *model) add(t *rapid.T) {
	owner := []byte(rapid.StringN(0, 8, 8).Draw(t, "owner"))
	if m.list.Find(owner) >= 0 {
		return
	}
	m.token++
	h := holders.Holder{Owner: owner, Token: m.token, Deadline: deadline(t), Count: rapid.Int64Range(1, holders.MaxCount).Draw(t, "count")}
	if grown := m.list.Append(&h); len(grown) != len(m.list)+holders.SizeOf(owner) {
		t.Fatalf("%d bytes have become %d with an owner of %d bytes", len(m.list), len(grown), len(owner))
	} else {
		m.list = grown
	}
	m.want = append(m.want, h)
}

func (m *model) renew(t *rapid.T) {
	i, at := m.one(t)
	m.want[i].Deadline = deadline(t)
	m.list.Renew(at, m.want[i].Deadline)
}

func (m *model) change(t *rapid.T) {
	i, at := m.one(t)
	m.token++
	m.want[i].Token, m.want[i].Count = m.token, m.want[i].Count/2+1
	m.list.SetToken(at, m.want[i].Token)
	m.list.SetCount(at, m.want[i].Count)
	if before := m.list.Requests(at); m.list.Requested(at) != before+1 || m.list.Requests(at) != before+1 {
		t.Fatalf("%d requests have become %d", before, m.list.Requests(at))
	}
}

func (m *model) remove(t *rapid.T) {
	i, at := m.one(t)
	m.list, m.want = m.list.Remove(at), slices.Delete(m.want, i, i+1)
}

func (m *model) expire(t *rapid.T) {
	now, before := deadline(t), bytes.Clone(m.list)
	left := m.list.Living(now)
	if !bytes.Equal(m.list, before) {
		t.Fatal("Living has changed the list")
	}
	m.want = slices.DeleteFunc(m.want, func(h holders.Holder) bool { return h.Deadline < now })
	if m.list = left; len(left) == 0 {
		m.list = holders.New(nil, 0)
	}
}

func (m *model) check(t *rapid.T) {
	taken, first, last, newest := int64(0), int64(math.MaxInt64), int64(0), int64(0)
	for _, h := range m.want {
		taken, first, last, newest = taken+h.Count, min(first, h.Deadline), max(last, h.Deadline), max(newest, h.Token)
	}
	got := slices.Collect(m.list.All())
	if !slices.EqualFunc(got, m.want, func(a, b holders.Holder) bool {
		return bytes.Equal(a.Owner, b.Owner) && a.Token == b.Token && a.Deadline == b.Deadline && a.Count == b.Count
	}) {
		t.Fatalf("the holders are %+v, want %+v", got, m.want)
	}
	if l := m.list; l.Len() != len(m.want) || l.Taken() != taken || l.Earliest() != first || l.Latest() != last {
		t.Fatalf("%d holders, %d taken, leases from %d to %d; want %d, %d, %d to %d",
			l.Len(), l.Taken(), l.Earliest(), l.Latest(), len(m.want), taken, first, last)
	}
	if token, ok := m.list.Valid(false, latest); ok != (len(m.want) > 0) || ok && token != newest {
		t.Fatalf("valid: %v, token %d; want %d holders and token %d", ok, token, len(m.want), newest)
	}
}

func TestAListHasTheHoldersOfItsModel(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{list: holders.New(nil, 0)}
		t.Repeat(map[string]func(*rapid.T){"add": m.add, "renew": m.renew, "change": m.change, "remove": m.remove, "expire": m.expire,
			"": m.check})
	})
}

// two returns a semaphore with two holders.
func two() holders.List {
	l := holders.New(nil, 0)
	l = l.Append(&holders.Holder{Owner: []byte("ann"), Token: 1, Deadline: 10, Count: 1})
	return l.Append(&holders.Holder{Owner: []byte("bob"), Token: 2, Deadline: 20, Count: 1})
}

func TestBytesThatBreakAnInvariantAreNotValid(t *testing.T) {
	if last, ok := two().Valid(false, latest); !ok || last != 2 {
		t.Fatalf("two holders: %d, %v", last, ok)
	}
	if _, ok := two().Valid(true, latest); ok {
		t.Error("an exclusive lock has two holders")
	}
	shared := two()
	shared.Share()
	if _, ok := shared.Valid(true, latest); !ok {
		t.Error("a shared lock may have two holders")
	}
	second := holders.Head + holders.SizeOf([]byte("ann"))
	for name, breaks := range map[string]func(l holders.List) holders.List{
		"the same owner twice":              func(l holders.List) holders.List { copy(l.Owner(second), "ann"); return l },
		"the same token twice":              func(l holders.List) holders.List { l.SetToken(second, 1); return l },
		"no token":                          func(l holders.List) holders.List { l.SetToken(second, 0); return l },
		"a token beyond engine time":        func(l holders.List) holders.List { l.SetToken(second, holders.MaxToken+1); return l },
		"a lease beyond the last":           func(l holders.List) holders.List { l.Renew(second, latest+1); return l },
		"no permit":                         func(l holders.List) holders.List { l.SetCount(second, 0); return l },
		"a semaphore that is shared":        func(l holders.List) holders.List { l.Share(); return l },
		"an owner that goes beyond the end": func(l holders.List) holders.List { return l[:len(l)-1] },
		"a holder that is cut off":          func(l holders.List) holders.List { return l[:second+1] },
		"an earliest lease of no holder":    func(l holders.List) holders.List { l[2]++; return l },
		"a later version":                   func(l holders.List) holders.List { l[0]++; return l },
		"no holder":                         func(l holders.List) holders.List { return l[:holders.Head] },
	} {
		if _, ok := breaks(two()).Valid(false, latest); ok {
			t.Errorf("%s is valid", name)
		}
	}
}
