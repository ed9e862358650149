package engine

import (
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/clock"
)

// containerModel has the state that the models of hashes, sets and sorted sets share: an
// engine in virtual time.
type containerModel struct {
	db     *DB
	clock  *clock.Manual
	layout Layout
}

func newContainerModel() containerModel {
	return containerModel{clock: clock.NewManual(epoch), layout: defaultLayout()}
}

// open opens the engine with the model's layout. The caller closes it.
func (m *containerModel) open() {
	m.db = Open(Options{Databases: 1, Shards: 4, Clock: m.clock, RecordEffects: true})
	m.db.SetLayout(m.layout)
}

func (m *containerModel) do(f func(tx *Tx)) {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	f(tx)
}

func (m *containerModel) now() int64 { return m.clock.Micros() / 1000 }

func (m *containerModel) advance(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.Int64Range(1, 30).Draw(t, "ms")) * time.Millisecond)
}

// replayInto runs the effects in another engine, and then look in a transaction on it.
func (m *containerModel) replayInto(t *rapid.T, run func(tx *Tx, args [][]byte) error, look func(tx *Tx)) {
	db := Open(Options{Databases: 1, Shards: 4, Clock: clock.NewManual(epoch)})
	defer db.Close()
	db.SetActiveExpiry(false)
	for _, e := range m.db.Drain() {
		tx := db.BeginAll(0)
		tx.Replaying()
		err := run(tx, e.Args)
		tx.Commit()
		if err != nil {
			t.Fatalf("%.100q: %v", e.Args, err)
		}
	}
	tx := db.BeginAll(0)
	defer tx.Commit()
	tx.Replaying()
	look(tx)
}
