package script

import (
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Error is an error in the form of an error reply: its code, a space, its text.
type Error = resp.ReplyError

// Counted is the Error of a command with which the script failed too. The Host has counted
// it already.
type Counted struct{ err Error }

func (e Counted) Error() string { return e.err.Error() }

// Unwrap returns the Error.
func (e Counted) Unwrap() error { return e.err }

// Options configure an Engine.
type Options struct {
	MemoryLimit int    // bytes that the values of each of the two machines may take; 0: no bound
	Version     string // redis.REDIS_VERSION
	// Own is the server's own version, EBB_VERSION, from which EBB_VERSION_NUM is made. Without
	// it scripts see what Redis 7.0 has alone: no server, no SERVER_NAME, no os.
	Own string
	// CPU returns the CPU time that the process has used, in seconds: os.clock. nil: 0.
	CPU func() float64
	// The Engine calls Charge with the number of bytes by which the cached scripts and the
	// libraries grow or shrink, as ScriptBytes and FunctionBytes of Stats count them. It may
	// be nil.
	Charge func(scripts, libraries int)
}

// cpu returns the result of os.clock.
func (o *Options) cpu() float64 {
	if o.CPU == nil {
		return 0
	}
	return o.CPU()
}

// Engine runs scripts and functions. Its methods are safe for concurrent use, except
// those that run code (Run, CallFunction, LoadLibrary, RestoreLibraries): only one
// goroutine at a time may call these.
type Engine struct {
	scripts   *machine // EVAL's
	functions *machine // FCALL's

	// mu guards what follows. It is held for look-ups and changes of the
	// catalogue, not while code is compiled or run.
	mu      sync.Mutex
	cache   cache
	library catalogue
	gone    []*Library                       // removed libraries that the machine still holds
	charged struct{ scripts, libraries int } // the sums of the calls of charge
	charge  func(scripts, libraries int)

	liveEval, liveFunc atomic.Int64 // bytes in the machines after their last run
	heavy              atomic.Bool  // a run has allocated much: see TakeHeavy
}

// heavyRun is the number of bytes from which a run's allocations count as heavy.
const heavyRun = 64 << 20

// TakeHeavy reports whether a run has allocated tens of megabytes since TakeHeavy was
// called last: if so, the process may be able to return memory to the system.
func (e *Engine) TakeHeavy() bool { return e.heavy.Load() && e.heavy.Swap(false) }

// New returns an Engine without scripts.
func New(o Options) *Engine {
	e := &Engine{scripts: newMachine(), functions: newMachine(), library: newCatalogue(), charge: o.Charge}
	e.cache.reset()
	e.scripts.sandboxScripts(o)
	e.functions.sandboxFunctions(o)
	e.scripts.bound(o.MemoryLimit)
	e.functions.bound(o.MemoryLimit)
	e.done(e.scripts, &e.liveEval)
	e.done(e.functions, &e.liveFunc)
	return e
}

// Run runs a script and writes its result to out. keys and args must not change later:
// they become strings of the script without a copy. The error is an Error or an error of
// Host.Tick. The caller sends it; Run writes nothing then.
func (e *Engine) Run(s *Script, h Host, keys, args [][]byte, out *wire.Writer) error {
	if s.main == nil {
		s.main = e.scripts.state.Bind(s.proto, e.scripts.state.Globals())
	}
	return e.runMain(s, s.main, h, keys, args, out)
}

// runMain runs a script in one of its forms.
func (e *Engine) runMain(s *Script, main *lua.Closure, h Host, keys, args [][]byte, out *wire.Writer) error {
	m := e.scripts
	m.begin(h)
	err := m.reset(m.keys, keys)
	if err == nil {
		err = m.reset(m.argv, args)
	}
	if err == nil {
		err = m.run(lua.ClosureValue(main), out)
	}
	if err != nil {
		err = m.failure(err, s.SHA)
	}
	_ = m.reset(m.keys, nil) // needs no memory
	_ = m.reset(m.argv, nil)
	e.done(m, &e.liveEval)
	return err
}

// CallFunction runs a function as Run runs a script.
func (e *Engine) CallFunction(f *Function, h Host, keys, args [][]byte, out *wire.Writer) error {
	m := e.functions
	m.begin(h)
	err := m.runFunction(f, keys, args, out)
	if err != nil {
		err = m.failure(err, f.Name)
	}
	e.finish(m)
	return err
}

// done ends a run, and stores the size of its machine for Stats, which may be called while
// the machine runs again.
func (e *Engine) done(m *machine, live *atomic.Int64) {
	charged := m.state.Charged()
	if charged-m.charged+m.written > heavyRun {
		e.heavy.Store(true)
	}
	m.charged = charged
	m.end()
	live.Store(int64(m.state.Live()))
}

// forgetAtOnce is the number of removed libraries that the machine releases after one run,
// at about 50 ns each.
const forgetAtOnce = 1024

// finish does the work of done for the functions' machine, and then releases some of the
// removed libraries. It does so after each run, because only the goroutine that runs code
// may use the machine.
func (e *Engine) finish(m *machine) {
	e.mu.Lock()
	gone := e.gone[:min(len(e.gone), forgetAtOnce)]
	if e.gone = e.gone[len(gone):]; len(e.gone) == 0 {
		e.gone = nil
	}
	e.mu.Unlock()
	for _, l := range gone {
		m.forget(l)
	}
	clear(gone)
	e.done(m, &e.liveFunc)
}

// settle calls charge with the change since its last call. The caller holds the lock.
func (e *Engine) settle() {
	scripts, libraries := e.cache.bytes-e.charged.scripts, e.library.bytes-e.charged.libraries
	if e.charge != nil && (scripts != 0 || libraries != 0) {
		e.charge(scripts, libraries)
	}
	e.charged.scripts, e.charged.libraries = e.cache.bytes, e.library.bytes
}

// Stats holds the numbers of INFO and FUNCTION STATS.
type Stats struct {
	Scripts       int // cached scripts
	Evicted       int // scripts that were forgotten for others since ResetStats
	Libraries     int
	Functions     int
	ScriptBytes   int // what the cached scripts take beside the machine
	FunctionBytes int // what the libraries take beside the machine
	ScriptHeap    int // bytes of the values in EVAL's machine
	FunctionHeap  int // and in that of the functions
}

// ResetStats sets Stats.Evicted to 0.
func (e *Engine) ResetStats() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cache.evicted = 0
}

// Stats returns the figures. The heaps' are those after the last run.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Stats{
		Scripts: len(e.cache.byText), Evicted: e.cache.evicted, ScriptBytes: e.cache.bytes,
		Libraries: len(e.library.libraries), Functions: len(e.library.functions), FunctionBytes: e.library.bytes,
		ScriptHeap: int(e.liveEval.Load()), FunctionHeap: int(e.liveFunc.Load()),
	}
}
