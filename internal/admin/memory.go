package admin

import (
	"runtime/metrics"
	"sync"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/system"
)

// Memory holds the uses of the memory, in bytes.
type Memory struct {
	Used      int64                  // live data: records, values, tables, and data that the server stores for clients
	Peak      int64                  // the greatest Used that the server has seen
	Held      int64                  // slabs in use
	Idle      int64                  // slabs kept for later
	Overhead  int64                  // of Used: tables, deadlines, everything except data
	Protected engine.ProtectedMemory // of Used: data that is never evicted, and limiters
	RSS       int64                  // of the process; if that is not known, the memory that Go took from the system
	Heap      int64                  // Go's own
	Clients   int64
	Keys      int64
	Tables    []TableMemory
}

// TableMemory is the overhead of one database.
type TableMemory struct{ DB, Tables, Deadlines int64 }

// Gaps returns the bytes that the process would save if slabs held only live bytes.
func (m *Memory) Gaps() int64 { return max(0, min(m.Held+m.Idle-m.Used, m.RSS-1)) }

// Memory reads the uses of the memory. tx locks the shards that it reads by itself. It
// costs O(clients).
func (s *Server) Memory(tx *engine.Tx) Memory {
	return s.memory(tx, tx.Keyspaces())
}

// memory is Memory for a caller that has the numbers of the databases.
func (s *Server) memory(tx *engine.Tx, spaces []engine.KeyspaceStats) Memory {
	m := Memory{Used: tx.UsedMemory(), Protected: tx.ProtectedMemory()}
	for db, k := range spaces {
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

// settle fills in the numbers that do not need the shards.
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
	p := s.process.read(s.DB.Clock().Micros())
	m.Heap = p.heap
	if m.RSS = p.resident; m.RSS == 0 {
		m.RSS = p.total + m.Held + m.Idle
	}
}

// processEvery is the time, in us, for which what the system and the runtime say about memory stands. Asking them takes
// longer than all else that INFO does, and Redis asks as often.
const processEvery = 100 * 1000

type processMemory struct {
	mu sync.Mutex // guards what follows
	at int64      // the instant, in us, at which the numbers were read
	processNumbers
}

// processNumbers are numbers of bytes.
type processNumbers struct {
	machine  int64 // what the process may have
	resident int64 // 0: not known
	heap     int64 // Go's objects
	total    int64 // all that Go took from the system
}

// read returns the numbers, which at the instant now, in us, are younger than processEvery.
func (p *processMemory) read(now int64) processNumbers {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := now - p.at; d < 0 || d >= processEvery {
		p.at, p.machine, p.resident = now, system.Memory(), system.ResidentMemory()
		p.heap, p.total = goMemory()
	}
	return p.processNumbers
}

// goMemory returns the bytes of Go's objects, and of all that Go took from the system.
// Unlike runtime.ReadMemStats it does not stop the goroutines.
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
