package expmap

import (
	"context"
	"fmt"
	"iter"

	"github.com/ebbdb/ebb/conn"
)

// pageLen is the approximate number of entries in one step of an iteration.
const pageLen = 200

// Entry is a key and its value.
type Entry[K comparable, V any] struct {
	Key   K
	Value V
}

// All yields the living entries in batches, and ends with the first error. It yields an entry that exists
// during the whole iteration at least once; an entry that is added or removed meanwhile may be yielded.
// Iterating does not count as use: idle times continue.
func (m *Map[K, V]) All(ctx context.Context) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		m.each(ctx, func(f, v string) (Entry[K, V], error) {
			key, err := m.o.Keys.Decode([]byte(f))
			if err != nil {
				return Entry[K, V]{}, err
			}
			value, err := m.decode(v)
			return Entry[K, V]{key, value}, err
		}, yield)
	}
}

// Keys yields the keys of the living entries, as All does.
func (m *Map[K, V]) Keys(ctx context.Context) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		var none K
		m.each(ctx, func(f, _ string) (Entry[K, V], error) {
			key, err := m.o.Keys.Decode([]byte(f))
			return Entry[K, V]{Key: key}, err
		}, func(e Entry[K, V], err error) bool {
			if err != nil {
				return yield(none, err)
			}
			return yield(e.Key, nil)
		})
	}
}

func (m *Map[K, V]) each(ctx context.Context, read func(f, v string) (Entry[K, V], error), yield func(Entry[K, V], error) bool) {
	fail := func(err error) { yield(Entry[K, V]{}, m.failed("iterate", err)) }
	if err := m.begin(ctx, false); err != nil {
		fail(err)
		return
	}
	for cursor := "0"; ; {
		v, err := m.page(ctx, cursor)
		if err != nil {
			fail(err)
			return
		}
		for f, value := range v.Elems[1].Pairs {
			e, err := read(f.String(), value.String())
			if m.skipUndecodable(err) {
				continue
			}
			if err != nil {
				fail(err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if cursor = v.Elems[0].String(); cursor == "0" {
			return
		}
	}
}

func (m *Map[K, V]) page(ctx context.Context, cursor string) (v conn.Value, err error) {
	if m.mode() == modeNative || m.mode() == modeFields {
		v, err = m.c.Do(ctx, "HSCAN", m.key, cursor, "COUNT", pageLen)
	} else {
		v, err = m.run(ctx, m.layout().page, "", cursor, pageLen)
	}
	if err == nil && len(v.Elems) != 2 {
		err = fmt.Errorf("%w: a page is a cursor and a list, got %d parts", conn.ErrValue, len(v.Elems))
	}
	return v, err
}
