package script

import (
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/resp"
)

// Error is an error as the wire shows it: its code, a space, its text.
type Error = resp.ReplyError

// Counted is an Error with which a command has failed, and then the script: the
// Host has counted it already.
type Counted struct{ err Error }

func (e Counted) Error() string { return e.err.Error() }

// Unwrap returns the Error.
func (e Counted) Unwrap() error { return e.err }

// Options configure an Engine.
type Options struct {
	MemoryLimit int    // bytes that the values of each of the two machines may take; 0: no bound
	Version     string // redis.REDIS_VERSION
	VersionNum  int    // redis.REDIS_VERSION_NUM: major<<16 | minor<<8 | patch
	// Own is the server's own version, EBB_VERSION, from which EBB_VERSION_NUM is made. Without
	// it scripts see what Redis 7.0 has alone: no server, no SERVER_NAME, no os.
	Own string
	// CPU returns the CPU time that the process has used, in seconds: os.clock. nil: 0.
	CPU func() float64
	// Charge is told by how many bytes the cached scripts and the libraries grow and
	// shrink, as ScriptBytes and FunctionBytes of Stats count them. It may be nil.
	Charge func(bytes int)
}

// cpu is os.clock.
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
	gone    []*Library // that the machine has not let go yet
	charged int        // what charge was told of
	charge  func(int)

	liveEval, liveFunc atomic.Int64 // bytes in the machines after their last run
	heavy              atomic.Bool  // a run has allocated much: see TakeHeavy
}

// heavyRun is how many bytes a run allocates to be a heavy one.
const heavyRun = 64 << 20

// TakeHeavy reports whether a run has allocated tens of megabytes since TakeHeavy
// was called last: then there may be memory to give back to the system.
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

// Run runs a script and writes its result to out. keys and args must not change
// any more: they become strings of the script without a copy. The error, an
// Error or what Host.Tick returned, is for the caller to send; nothing is
// written then.
func (e *Engine) Run(s *Script, h Host, keys, args [][]byte, out *resp.Writer) error {
	if s.main == nil {
		s.main = e.scripts.state.Bind(s.proto, e.scripts.state.Globals())
	}
	return e.runMain(s, s.main, h, keys, args, out)
}

// runMain runs a script in one of its forms.
func (e *Engine) runMain(s *Script, main *lua.Closure, h Host, keys, args [][]byte, out *resp.Writer) error {
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

// CallFunction is Run for a function.
func (e *Engine) CallFunction(f *Function, h Host, keys, args [][]byte, out *resp.Writer) error {
	m := e.functions
	m.begin(h)
	err := m.runFunction(f, keys, args, out)
	if err != nil {
		err = m.failure(err, f.Name)
	}
	e.finish(m)
	return err
}

// done ends a run, and keeps the size of its machine for Stats, which may be
// asked while it runs again.
func (e *Engine) done(m *machine, live *atomic.Int64) {
	charged := m.state.Charged()
	if charged-m.charged+m.written > heavyRun {
		e.heavy.Store(true)
	}
	m.charged = charged
	m.end()
	live.Store(int64(m.state.Live()))
}

// forgetAtOnce is how many libraries that were removed the machine lets go of
// behind one run, at some 50 ns each.
const forgetAtOnce = 1024

// finish is done for the functions' machine, which then lets go of libraries that
// were removed, some behind each run: only the goroutine that runs code may touch it.
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

// settle tells charge what has changed. The caller holds the lock.
func (e *Engine) settle() {
	n := e.cache.bytes + e.library.bytes
	if e.charge != nil && n != e.charged {
		e.charge(n - e.charged)
	}
	e.charged = n
}

// Stats are the figures of INFO and FUNCTION STATS.
type Stats struct {
	Scripts       int // cached scripts
	Evicted       int // scripts that were forgotten for others, ever
	Libraries     int
	Functions     int
	ScriptBytes   int // what the cached scripts take beside the machine
	FunctionBytes int // what the libraries take beside the machine
	ScriptHeap    int // bytes of the values in EVAL's machine
	FunctionHeap  int // and in that of the functions
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
