package modeltest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// deliveries is a queue that delivers to a stream at times, beside what has become of each job.
type deliveries struct {
	db      *engine.DB
	clock   *clock.Manual
	replica *Replica
	added   int
	until   []int64          // the last ms of each job that may expire, 0 of others
	sent    map[string]int64 // the jobs that were in the stream, with the ms of their entries
	done    map[string]bool  // cancelled or acknowledged
	leases  map[string]int64 // tokens
	on      bool             // the queue delivers
	paused  bool
	blocked int64 // the last ms at which the stream's key held another type, or the queue was paused
	foreign bool
}

var (
	sender = []byte("{q}")
	sendTo = []byte("{q}:s")
)

func TestDeliveriesToAStreamLoseAndDuplicateNothing(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		d := &deliveries{clock: clock.NewManual(time.UnixMilli(1_700_000_000_000)), sent: map[string]int64{}, done: map[string]bool{},
			leases: map[string]int64{}}
		d.db = engine.Open(engine.Options{Databases: 1, Shards: 4, Clock: d.clock, RecordEffects: true})
		defer d.db.Close()
		var err error
		if d.replica, err = NewReplica(); err != nil {
			t.Fatal(err)
		}
		defer d.replica.Close()
		t.Repeat(map[string]func(*rapid.T){
			"": d.check, "add": d.add, "add2": d.add, "pop": d.pop, "settle": d.settle, "cancel": d.cancel, "config": d.config,
			"pause": d.pause, "foreign": d.change, "advance": d.advance, "advance2": d.advance,
		})
	})
}

func (d *deliveries) do(f func(tx *engine.Tx) error) {
	tx := d.db.Begin(0, sender, sendTo)
	err := f(tx)
	tx.Commit()
	if err != nil {
		panic(err)
	}
}

func (d *deliveries) now() int64 { return d.clock.Micros() / 1000 }

func (d *deliveries) add(t *rapid.T) {
	a := engine.QueueAdd{ID: fmt.Appendf(nil, "j%d", d.added), Payload: []byte("p"), Due: d.now() + rapid.Int64Range(-5, 30).Draw(t, "delay"),
		Priority: uint8(rapid.IntRange(0, 2).Draw(t, "priority")), Expire: max(0, rapid.Int64Range(-30, 20).Draw(t, "expire"))}
	d.do(func(tx *engine.Tx) error {
		id, added, err := tx.QueueAdd(sender, &a)
		if err == nil && (!added || string(id) != string(a.ID)) {
			err = fmt.Errorf("added %q, %v", id, added)
		}
		return err
	})
	d.added++
	d.until = append(d.until, 0)
	if a.Expire > 0 {
		d.until[d.added-1] = a.Due + a.Expire
	}
}

func (d *deliveries) pop(t *rapid.T) {
	d.do(func(tx *engine.Tx) error {
		n, err := tx.QueuePop(sender, 2, rapid.Int64Range(1, 40).Draw(t, "lease"), func(j engine.Job) { d.leases[string(j.ID)] = j.Token })
		if err == engine.ErrDelivers && d.on && n == 0 {
			return nil
		}
		if err == nil && d.on && tx.Exists(sender) {
			return fmt.Errorf("a worker got %d jobs of a queue that delivers", n)
		}
		return err
	})
}

func (d *deliveries) settle(t *rapid.T) {
	for id, token := range d.leases {
		ack := rapid.Bool().Draw(t, "ack")
		d.do(func(tx *engine.Tx) (err error) {
			if ack {
				ok, err := tx.QueueAck(sender, []byte(id), token)
				d.done[id] = d.done[id] || ok
				return err
			}
			_, err = tx.QueueNack(sender, []byte(id), token, rapid.Int64Range(0, 10).Draw(t, "delay"))
			return err
		})
		delete(d.leases, id)
		return
	}
}

func (d *deliveries) cancel(t *rapid.T) {
	id := fmt.Sprint("j", rapid.IntRange(0, d.added).Draw(t, "id"))
	d.do(func(tx *engine.Tx) error {
		n, err := tx.QueueCancel(sender, [][]byte{[]byte(id)})
		d.done[id] = d.done[id] || n > 0
		return err
	})
}

// configure changes the configuration.
func (d *deliveries) configure(change func(c *engine.QueueConfig, now int64)) {
	d.do(func(tx *engine.Tx) error {
		i, _, err := tx.QueueInfo(sender)
		if err != nil {
			return err
		}
		change(&i.QueueConfig, tx.Millis())
		return tx.QueueConfigure(sender, i.QueueConfig)
	})
}

func (d *deliveries) config(*rapid.T) {
	d.on = !d.on
	d.configure(func(c *engine.QueueConfig, _ int64) {
		if c.Deliver = nil; d.on {
			c.Deliver = sendTo
		}
	})
}

func (d *deliveries) pause(t *rapid.T) {
	d.paused = !d.paused
	span := rapid.Int64Range(0, 20).Draw(t, "span") // 0: for good
	d.configure(func(c *engine.QueueConfig, now int64) {
		if c.PausedUntil = 0; d.paused {
			if c.PausedUntil = engine.PausedForGood; span > 0 {
				c.PausedUntil = now + span
			}
		}
	})
	d.blocked = d.now() + span
}

// change puts another type in the place of the stream, or removes it.
func (d *deliveries) change(t *rapid.T) {
	d.foreign = !d.foreign
	d.do(func(tx *engine.Tx) error {
		if !d.foreign {
			tx.Del(sendTo)
			return nil
		}
		if err := d.collect(tx); err != nil {
			return err
		}
		_, _, err := tx.Set(sendTo, []byte("x"), engine.SetOptions{}, nil)
		return err
	})
	d.blocked = d.now()
}

func (d *deliveries) advance(t *rapid.T) {
	d.clock.Advance(time.Duration(rapid.SampledFrom([]int64{1, 1, 5, 20, 150}).Draw(t, "ms")) * time.Millisecond)
	if d.foreign || d.paused {
		d.blocked = max(d.blocked, d.now())
	}
}

// collect reads the stream.
func (d *deliveries) collect(tx *engine.Tx) (err error) {
	if d.foreign && tx.Type(sendTo) != engine.Stream {
		return nil
	}
	_, rangeErr := tx.XRange(sendTo, engine.XRange{Last: engine.MaxStreamID}, func(e *engine.StreamEntry) {
		x := map[string]string{}
		for range e.Fields() {
			name, value := e.Field()
			x[string(name)] = value.String()
		}
		at := int64(e.ID().Ms)
		if was, there := d.sent[x["id"]]; there && was != at {
			err = fmt.Errorf("%s was delivered at %d and at %d", x["id"], was, at)
		}
		d.sent[x["id"]] = at
		if due := x["due"]; due > fmt.Sprint(at) && len(due) == len(fmt.Sprint(at)) {
			err = fmt.Errorf("%s was delivered at %d and is due at %s", x["id"], at, due)
		}
	})
	if err == nil {
		err = rangeErr
	}
	return err
}

// check verifies that each job is in one place.
func (d *deliveries) check(t *rapid.T) {
	d.do(func(tx *engine.Tx) error {
		if err := d.collect(tx); err != nil {
			return err
		}
		info, _, err := tx.QueueInfo(sender)
		if err != nil {
			return err
		}
		for i := range d.added {
			id := fmt.Sprint("j", i)
			_, there, err := tx.QueueGet(sender, []byte(id))
			if err != nil {
				return err
			}
			places := 0
			_, sent := d.sent[id]
			for _, in := range []bool{there, sent, d.done[id]} {
				if in {
					places++
				}
			}
			if places > 1 {
				return fmt.Errorf("%s: in the queue %v, sent %v, done %v", id, there, sent, d.done[id])
			}
			if places == 0 && (d.until[i] == 0 || d.now() <= d.until[i]) {
				return fmt.Errorf("%s is lost; it lives until %d", id, d.until[i])
			}
		}
		if (info.Suspended != "") != (d.on && d.foreign) {
			return fmt.Errorf("suspended: %q, foreign: %v", info.Suspended, d.foreign)
		}
		if d.on && !d.foreign && info.PausedUntil == 0 && info.Ready > 0 && d.now() > d.blocked+200 {
			return fmt.Errorf("%d jobs are ready and were not delivered", info.Ready)
		}
		return nil
	})
	if err := d.db.Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.replica.Follow(d.db); err != nil {
		t.Fatal(err)
	}
}
