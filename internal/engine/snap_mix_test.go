package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/stream"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// picture describes the content of all databases. tx holds all shards.
func picture(tx *engine.Tx) map[string]string {
	all := map[string]string{}
	for i := range tx.DB().Databases() {
		tx.Select(i)
		tx.Each(func(k engine.Key) {
			all[fmt.Sprint(i, " ", string(k.Name()))] = fmt.Sprint(k.Kind(), " until ", k.Deadline(), " span ", k.Span(), ": ", valueOf(k))
		})
	}
	return all
}

func valueOf(k engine.Key) string {
	switch k.Kind() {
	case engine.String:
		return string(k.Value())
	case engine.Stream:
		var b strings.Builder
		s := k.Stream()
		fmt.Fprint(&b, s.Last, s.Added, len(s.Groups()))
		for it := s.Iter(stream.ID{}); it.Next(); {
			fmt.Fprint(&b, it.ID())
		}
		return b.String()
	case engine.Hash, engine.Set, engine.ZSet, engine.List:
		var items []string
		k.Items(func(it engine.Item) {
			items = append(items, fmt.Sprintf("%s=%s %v %d", it.Key, it.Value, it.Score, it.Deadline))
		})
		if k.Kind() == engine.Hash || k.Kind() == engine.Set {
			sort.Strings(items)
		}
		return strings.Join(items, "\n")
	}
	return fmt.Sprintf("%x", k.Payload())
}

// mixed writes at random to keys of all kinds, small and large.
func mixed(t *testing.T, db *engine.DB, seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	long := bytes.Repeat([]byte("long"), 30_000)
	for range n {
		// Few keys are large: they get most of the writes to their kind.
		which := 0
		if rng.IntN(2) == 0 {
			which = rng.IntN(200)
		}
		item := []byte("item:" + strconv.Itoa(rng.IntN(3000)) + "................")
		some := [][]byte{item}
		what := rng.IntN(20)
		key := []byte(fmt.Sprint(what/2, ":", which))
		switch what {
		case 13:
			key = []byte(fmt.Sprint("slides:", which))
		case 16:
			key = []byte(fmt.Sprint(0, ":", which))
		}
		tx := db.Begin(rng.IntN(2), key)
		var err error
		switch what {
		case 0:
			_, err = tx.HSet(key, [][]byte{item, []byte("value")})
		case 1:
			_, err = tx.HDel(key, some)
		case 2:
			_, err = tx.SAdd(key, some)
		case 3:
			_, err = tx.SRem(key, some)
		case 4:
			_, _, err = tx.ZAdd(key, []engine.Scored{{Member: item, Score: rng.Float64()}}, engine.ZAddOptions{})
		case 5:
			_, err = tx.ZRem(key, some)
		case 6:
			_, err = tx.LPush(key, engine.End(rng.IntN(2)), some, false)
		case 7:
			_, err = tx.LPop(key, engine.End(rng.IntN(2)), 1, func(int) {}, func([]byte) {})
		case 8:
			_, _, err = tx.XAdd(key, &engine.XAdd{Auto: true, Pairs: [][]byte{item, item}})
		case 9:
			_, err = tx.XTrim(key, engine.StreamTrim{Len: 500})
		case 10:
			_, _, err = tx.QueueAdd(key, &engine.QueueAdd{Payload: item})
		case 11:
			_, err = tx.QueuePop(key, 1, 1000, func(engine.Job) {})
		case 12:
			_, err = tx.BFAdd(key, item)
		case 13:
			_, _, err = tx.Set(key, item, engine.SetOptions{Deadline: tx.Millis() + 100_000, Span: 100_000}, nil)
		case 14, 15:
			if len(key)%2 == 0 || rng.IntN(10) == 0 {
				_, _, err = tx.Set(key, long, engine.SetOptions{}, nil)
			} else {
				_, err = tx.SetRange(key, int64(rng.IntN(100_000)), item)
			}
		case 16:
			err = tx.HExpire(key, some, tx.Millis()+1000_000, 0, func(int) {})
		default:
			tx.Del(key)
		}
		tx.Commit()
		if err != nil && err != engine.ErrWrongType { // the key was renamed
			t.Error(what, err)
			return
		}
		if rng.IntN(1000) == 0 {
			tx := db.BeginAll(rng.IntN(2))
			switch rng.IntN(8) {
			case 0:
				tx.Swap(0, 1)
			case 1:
				tx.Flush(rng.IntN(2))
			default:
				_, _ = tx.Rename([]byte(fmt.Sprint(rng.IntN(8), ":0")), []byte(fmt.Sprint(rng.IntN(8), ":", rng.IntN(10))), false)
			}
			tx.Commit()
		}
	}
}

func TestSnapshotsWhileManyWriteToEverything(t *testing.T) {
	db := opened(t)
	mixed(t, db, 1, 20_000)
	n := 12_000
	if tier.Short() {
		n = 6_000
	}
	for round := range 4 {
		var want map[string]string
		r := begin(t, db, engine.SnapshotOptions{AtCut: func(tx *engine.Tx) { want = picture(tx) }})
		var writers sync.WaitGroup
		for i := range 3 {
			writers.Go(func() { mixed(t, db, uint64(round*10+i), n/3) })
		}
		for range 5 {
			if round%2 == 0 {
				r.step()
			}
		}
		if round == 3 {
			writers.Wait()
		}
		file := r.finish()
		writers.Wait()
		second, err := load(t, file, engine.LoadOptions{}, frozen())
		if err != nil {
			t.Fatal(err)
		}
		for _, db := range []*engine.DB{db, second} {
			if err := db.Check(); err != nil {
				t.Fatal(err)
			}
		}
		tx := second.BeginAll(0)
		same(t, picture(tx), want)
		tx.Commit()
	}
}
