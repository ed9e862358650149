package admin

import (
	"runtime/metrics"

	"github.com/ebbdb/ebb/engine"
)

// Memory is where the memory is, in bytes.
type Memory struct {
	Used      int64                  // living: records, values, tables, and what clients have the server keep
	Peak      int64                  // the greatest Used that the server has seen
	Held      int64                  // slabs in use
	Idle      int64                  // slabs kept for later
	Overhead  int64                  // of Used: tables, deadlines, all that is not data
	Protected engine.ProtectedMemory // of Used: what is never evicted, and limiters
	RSS       int64                  // of the process; what Go took from the system where that is not known
	Heap      int64                  // Go's own
	Clients   int64
	Keys      int64
	Tables    []TableMemory
}

// TableMemory is the overhead of one database.
type TableMemory struct{ DB, Tables, Deadlines int64 }

// Gaps is what the process would do without if slabs held living bytes alone.
func (m *Memory) Gaps() int64 { return max(0, min(m.Held+m.Idle-m.Used, m.RSS-1)) }

// Memory reads where the memory is. tx locks the shards that it reads by itself. It costs
// O(clients).
func (s *Server) Memory(tx *engine.Tx) Memory {
	m := Memory{Used: tx.UsedMemory(), Protected: tx.ProtectedMemory()}
	for db, k := range tx.Keyspaces() {
		if k.Keys+k.Due > 0 {
			tables, deadlines := tx.TableMemory(db)
			m.count(int64(db), tables, deadlines, int64(k.Keys))
		}
	}
	s.settle(&m)
	return m
}

// count adds the overhead of a database, and its living keys.
func (m *Memory) count(db, tables, deadlines, keys int64) {
	m.Tables = append(m.Tables, TableMemory{db, tables, deadlines})
	m.Overhead += tables + deadlines
	m.Keys += keys
}

// settle fills in what is known without a look at the shards.
func (s *Server) settle(m *Memory) {
	for {
		m.Peak = s.peak.Load()
		if m.Used <= m.Peak || s.peak.CompareAndSwap(m.Peak, m.Used) {
			break
		}
	}
	m.Peak = max(m.Peak, m.Used)
	m.Overhead += s.DB.Charged()
	held, idle := s.DB.HeldMemory()
	m.Held, m.Idle = int64(held), int64(idle)
	m.Clients = s.Host.ClientMemory()
	heap, total := goMemory()
	m.Heap = heap
	if m.RSS = ResidentMemory(); m.RSS == 0 {
		m.RSS = total + m.Held + m.Idle
	}
}

// goMemory returns the bytes of Go's objects, and of all that Go took from the
// system. Unlike runtime.ReadMemStats it stops nobody.
func goMemory() (objects, total int64) {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0, 0
		}
	}
	return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
}
