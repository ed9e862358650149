package session

import (
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/redact"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/system"
)

// This file runs scripts. A script runs in one transaction over all shards, because it may touch
// keys that it does not name. So one script runs at a time, and its state is in the service's one
// ScriptHost. Its calls pass resolve, permit and Run of the command as if a client had sent them
// inside MULTI:
//
//	EVAL ─▶ dispatch ─▶ coroutine ─▶ execute: LockAll ─▶ runEval ─▶ script.Engine.Run
//	                                                                │ redis.call
//	        ScriptHost.Call ◀───────────────────────────────────────┘
//	          └─▶ spec.Run in the same transaction, the reply in RESP
//
// docs/design/scripts.md gives the reasons, and describes the end of a script that does not end by itself.

// ScriptHost is the script.Host that runs the calls of the running script. It belongs to the goroutine that
// holds all shards.
type ScriptHost struct {
	svc *Service
	s   *Session    // represents the script if a handler needs a session
	x   command.Ctx // the context of the calls

	c      *Session // the session that runs the script
	run    *running // nil until the script has run for scriptSlice
	name   string   // the name of the function; "" for a script
	args   [][]byte // the request of EVAL or FCALL
	flags  script.Flags
	began  int64 // us
	limit  int64 // us after which other clients get BUSY; for a load, after which it fails
	loads  bool  // the script is a FUNCTION LOAD
	oom    bool  // memory was full when the script began
	begun  bool  // the last call was not refused
	wrote  bool
	failed bool // the result is an error, or contains one
	slot   int  // in a cluster: the slot of its first key; -1: none yet
	calls  int  // the number of calls, modulo timedCalls
	specs  [specCache]*command.Spec
}

// timedCalls is the number of calls of scripts of which the statistics time one: reading the clock twice
// takes as long as a GET.
const timedCalls = 16

// specCache is the number of commands that a host remembers: few scripts use more.
const specCache = 16

// scripting is the part of the service that runs scripts.
type scripting struct {
	scripts   *script.Engine
	host      ScriptHost              // the host of the running script
	running   atomic.Pointer[running] // the script, once it has run for scriptSlice
	copied    atomic.Int64            // bytes of data that debugging sessions have copied
	givesBack atomic.Bool             // the memory of scripts is about to be released
}

func (s *Service) initScripts() {
	o := s.scriptOptions()
	o.Charge = func(scripts, libraries int) {
		s.DB.ChargeApart(int64(scripts))
		s.DB.Charge(int64(libraries))
	}
	s.scripts = script.New(o)
	h := &s.host
	h.svc = s
	h.s = &Session{svc: s, connection: s.newConnection(nil), client: client{charger: s.DB, authed: true}, script: true}
	h.s.created = s.steady()
	h.s.view.multi.Store(-1)
	h.x = command.Ctx{Out: &h.s.out, DB: s.DB, Table: s.table, Host: h.s, NoWait: true}
}

// Scripts returns the engine that runs scripts and functions.
func (s *Service) Scripts() *script.Engine { return s.scripts }

// scriptOptions returns the options of the machines that run scripts and functions.
func (s *Service) scriptOptions() script.Options {
	limit := int(s.Config.Int("script-memory-limit"))
	return script.Options{MemoryLimit: limit, Version: admin.RedisVersion, Own: admin.Version, CPU: cpuSeconds}
}

// cpuSeconds returns the CPU time that the process has used, for os.clock of scripts.
func cpuSeconds() float64 {
	sys, user := system.CPUTime()
	return (sys + user).Seconds()
}

// startScript prepares the service's host for a script, function or load that c is about to run, in
// a transaction that holds all shards.
func startScript(c *command.Ctx, name string, flags script.Flags) *ScriptHost {
	h := &ServiceOf(c).host
	s := Of(c)
	h.c, h.name, h.args, h.flags = s, name, c.Args, flags
	h.run, h.wrote, h.failed, h.slot, h.loads = nil, false, false, -1, false
	h.began = ServiceOf(c).DB.Clock().Micros()
	h.limit = ServiceOf(c).busyAfter.Load()
	h.oom = s.oom
	h.s.dbi, h.s.user, h.s.noTouch, h.s.out.Proto = c.Tx.Selected(), s.user, s.noTouch, 2
	h.s.tx, h.x.Tx, h.s.ctx.Tx = c.Tx, c.Tx, c.Tx
	return h
}

// endScript ends the run that startScript has begun.
func (h *ScriptHost) endScript() {
	if r := h.run; r != nil {
		h.svc.running.Store(nil)
		close(r.finished)
		if h.svc.scripts.TakeHeavy() {
			h.svc.scheduleRelease()
		}
	}
	h.x.Tx.Select(h.c.dbi)
	h.c, h.args, h.run, h.x.Tx, h.x.Args, h.s.tx, h.s.user = nil, nil, nil, nil, nil, nil, nil
	if cap(h.s.out.Buf) > 1<<16 {
		h.s.out.Buf = nil
	}
}

// releaseAfter holds the delays after which the memory of a script is released: a later script may
// use it first, and a client may need time to read a long reply.
var releaseAfter = [...]time.Duration{time.Second, 5 * time.Second}

// scheduleRelease makes the collector run after a while and return the memory of scripts to the system.
// Otherwise the collector would run only after the allocation of the same amount again, which may never
// happen.
func (s *Service) scheduleRelease() {
	if s.ctx.Err() != nil || s.givesBack.Swap(true) {
		return
	}
	s.background.Go(func() {
		defer s.givesBack.Store(false)
		for _, after := range releaseAfter {
			select {
			case <-time.After(after):
				debug.FreeOSMemory()
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// The errors of calls that scripts may not make.
const (
	errScriptUnknown  = command.ReplyError("ERR Unknown Redis command called from script")
	errScriptArity    = command.ReplyError("ERR Wrong number of args calling Redis command from script")
	errScriptNot      = command.ReplyError("ERR This Redis command is not allowed from script")
	errScriptReadOnly = command.ReplyError("ERR Write commands are not allowed from read-only scripts.")
	errScriptSlot     = command.ReplyError("ERR Script attempted to access keys that do not hash to the same slot")
)

// scriptDenied returns the error for a call that the rules of the user refuse.
func scriptDenied(why acl.Denial, spec *command.Spec, user string) error {
	text, _ := strings.CutPrefix(string(noPermission(why, spec, user).(command.ReplyError)), "NOPERM ")
	return command.ReplyError("ERR ACL failure in script: " + text)
}

// Call implements script.Host.
func (h *ScriptHost) Call(args [][]byte) []byte {
	out := &h.s.out
	out.Buf = out.Buf[:0]
	if err := h.call(args); err != nil {
		out.Buf = out.Buf[:0]
		text := command.WireText(err)
		h.svc.admin.Totals.CountError(text)
		out.Error(text)
	}
	return out.Buf
}

func (h *ScriptHost) call(args [][]byte) error {
	if h.run != nil && h.run.killed.Load() {
		return ErrScriptKilled // the script could not catch the error of a later call
	}
	h.begun = false
	spec, err := h.resolve(args)
	if err != nil {
		return err
	}
	if err := h.admit(spec, args); err != nil {
		h.c.stats.of(spec).Rejected.Add(1)
		return err
	}
	h.begun = true
	if spec.Has(command.Slow) {
		h.c.leaveLoop()
	}
	x := &h.x
	x.Spec, x.Args = spec, args
	x.Tx.Select(h.s.dbi)
	x.Tx.NoTouch(h.s.noTouch)
	if seen := h.svc.observed.Load(); seen|h.c.observing != 0 {
		err = h.observed(seen, spec, args)
	} else {
		err = h.time(spec)
	}
	x.Tx.Tell()
	if !(spec.Has(command.Fast) || spec.Group == command.GroupString) {
		_ = h.Tick() // the call may have taken long; if the script must end, the machine calls Tick as well
	}
	return err
}

// time runs a call and records its time.
func (h *ScriptHost) time(spec *command.Spec) error {
	x, c := &h.x, h.c
	stats := c.stats.of(spec)
	stats.Calls.Add(1)
	c.batch.total++
	if h.calls = (h.calls + 1) % timedCalls; h.calls == 0 {
		since := h.svc.DB.Clock().Micros()
		defer func() { stats.Micros.Add(timedCalls * (h.svc.DB.Clock().Micros() - since)) }()
	}
	if err := spec.Run(x); err != nil {
		stats.Failed.Add(1)
		return err
	}
	return nil
}

// observed runs a call that MONITOR, SLOWLOG or tracking observes: see observe.go.
func (h *ScriptHost) observed(seen uint32, spec *command.Spec, args [][]byte) error {
	c := h.c
	var since int64
	if seen&obsHot != 0 {
		c.beginHot(spec)
	}
	if seen&obsAll != 0 || seen&obsSlow != 0 && !(spec.Has(command.Fast) || spec.Group == command.GroupString) {
		since = h.svc.DB.Clock().Micros()
	}
	err := h.time(spec)
	if seen&obsMonitors != 0 && spec.Flags&(command.Admin|command.SkipMonitor) == 0 {
		h.svc.monitors.feed(h.s, redact.Request(h.svc.table, spec, args))
	}
	c.ran(seen&^obsMonitors, spec, args, since)
	return err
}

// resolve finds the command of a call.
func (h *ScriptHost) resolve(args [][]byte) (*command.Spec, error) {
	var slot **command.Spec
	if n := len(args[0]); n > 0 {
		slot = &h.specs[(int(args[0][0]|0x20)+n*5)%specCache]
		if s := *slot; s != nil && command.EqualFold(args[0], s.Called()) && s.ArityOK(args) {
			return s, nil
		}
	}
	s, err := h.svc.table.Find(args)
	switch {
	case err != nil:
		return nil, errScriptUnknown
	case !s.ArityOK(args):
		h.c.stats.of(s).Rejected.Add(1)
		return nil, errScriptArity
	}
	if slot != nil && s.Plain() {
		*slot = s
	}
	return s, nil
}

// admit decides whether the script may run a command.
func (h *ScriptHost) admit(spec *command.Spec, args [][]byte) error {
	if spec.Has(command.NoScript) {
		return errScriptNot
	}
	if h.c.restrict != nil {
		if err := h.c.restrict(spec, args); err != nil {
			return err
		}
	}
	h.x.ForgetKeys()
	if u := h.s.user.User(); !u.Unlimited {
		if why, at := h.svc.acl.Check(&h.x, u, spec, args); why != acl.Allowed {
			refused(&h.c.ctx, acl.Refusal{Why: why, Object: refusedObject(why, spec, args, at), User: h.s.user.Name}, acl.InScript)
			return scriptDenied(why, spec, h.s.user.Name)
		}
	}
	if !spec.Has(command.Stale) && h.svc.gates.has(gateStale) && !h.c.replay {
		return errScriptStale
	}
	if spec.Flags&(command.Write|command.MayReplicate) != 0 {
		if h.flags&script.NoWrites != 0 {
			return errScriptReadOnly
		}
		if h.oom && !h.wrote && spec.Has(command.DenyOOM) && h.flags&script.AllowOOM == 0 {
			return command.ErrOOM
		}
		if closed := h.svc.gates.closed.Load(); closed != 0 && !h.wrote && !h.c.replay {
			if err := h.svc.gates.writing(gate(closed), spec.Has(command.Write), false); err != nil {
				return err
			}
		}
		if spec.Has(command.Write) && !h.wrote {
			h.wrote = true
			if h.run != nil {
				h.run.wrote.Store(true)
			}
		}
	}
	if h.svc.cluster && spec.HasKeys() && h.flags&script.AllowCrossSlot == 0 {
		return h.oneSlot(spec, args)
	}
	return nil
}

// oneSlot restricts a script in a cluster to one slot.
func (h *ScriptHost) oneSlot(spec *command.Spec, args [][]byte) error {
	keys, err := h.x.KeysOf(spec, args)
	if err != nil {
		return nil // the command reports the error
	}
	for _, k := range keys {
		slot := routing.Slot(args[k.Pos])
		if h.slot >= 0 && slot != h.slot {
			return errScriptSlot
		}
		h.slot = slot
	}
	return nil
}

// SetProto implements script.Host.
func (h *ScriptHost) SetProto(proto int) { h.s.out.Proto = proto }

// SetReplication implements script.Host. The effects of a script are always logged: a log that lacks some
// could not be replayed.
func (h *ScriptHost) SetReplication(aof, replicas bool) {}

// Allowed implements script.Host.
func (h *ScriptHost) Allowed(args [][]byte) (bool, error) {
	spec, err := h.svc.table.Find(args)
	if err != nil {
		return false, err
	}
	u := h.s.user.User()
	if u.Unlimited || !spec.ArityOK(args) {
		return u.Unlimited, nil
	}
	h.x.ForgetKeys()
	why, _ := h.svc.acl.Check(&h.x, u, spec, args)
	return why == acl.Allowed, nil
}

// MaxLogged is the greatest number of bytes of a logged message: Redis's LOG_MAX_LEN.
const MaxLogged = 1024

// Log implements script.Host.
func (h *ScriptHost) Log(level int, text string) {
	text = cleantext.Line(text, MaxLogged)
	switch level {
	case 0:
		h.svc.Log.Debug(text, "from", "script")
	case 1, 2:
		h.svc.Log.Info(text, "from", "script")
	default:
		h.svc.Log.Warn(text, "from", "script")
	}
}

// CountError implements script.Host.
func (h *ScriptHost) CountError(text string, counted bool) {
	if !counted {
		h.svc.admin.Totals.CountError(text)
	}
	h.failed = true
}

// Tick implements script.Host: it moves a long-running script off its loop, and ends a script that was
// killed.
func (h *ScriptHost) Tick() error {
	took := h.svc.DB.Clock().Micros() - h.began
	if took < scriptSlice {
		return nil
	}
	switch {
	case h.svc.ctx.Err() != nil:
		return h.Ended()
	case !h.wrote && h.c.abandonWait():
		return errScriptLeft
	}
	r := h.show()
	switch {
	case h.loads:
		if took > script.LoadTimeout*1000 {
			return script.ErrLoadTimeout
		}
	case r.killed.Load():
		return ErrScriptKilled
	case took >= h.limit && !r.over.Load():
		r.beOverdue()
		h.svc.Log.Warn("a script takes long; SCRIPT KILL or FUNCTION KILL ends it", "name", h.name, "ms", took/1000)
	}
	return nil
}

// Ended returns the error of a script that ends because the server stops, and drops its effects.
func (h *ScriptHost) Ended() error {
	if h.wrote {
		h.x.Tx.Forget()
	}
	return errScriptEnded
}

// Hold makes other clients get BUSY from now on, because the user of a debugger may stop the script for any
// time. SCRIPT KILL closes killing when it ends the script.
func (h *ScriptHost) Hold() (killing <-chan struct{}) {
	r := h.show()
	if !r.over.Load() {
		r.beOverdue()
	}
	return r.killing
}

// Refused reports whether the last call was refused, so that its command did not run.
func (h *ScriptHost) Refused() bool { return !h.begun }

// show makes the script visible as the running one.
func (h *ScriptHost) show() *running {
	if h.run != nil {
		return h.run
	}
	r := &running{name: h.name, args: h.args, began: h.began,
		overdue: make(chan struct{}), finished: make(chan struct{}), killing: make(chan struct{})}
	r.wrote.Store(h.wrote)
	h.run = r
	h.svc.running.Store(r)
	h.svc.DB.WakeWaiting()
	h.c.leaveLoop()
	return r
}

// RunScript runs a script or a function for the command x, in its transaction, which holds all shards; name
// is "" for a script. If the flags do not permit the script, RunScript returns an error without calling run.
func (c *Session) RunScript(x *command.Ctx, flags script.Flags, name string, run func(h *ScriptHost) error) error {
	readOnly := x.Spec.Has(command.ReadOnly)
	closed := gate(c.svc.gates.closed.Load())
	if flags&script.Compat == 0 {
		if closed != 0 { // inside EXEC no gate was checked before
			if err := c.pass(closed, x.Spec, scriptFlagsOf(x.Spec.Flags, flags)); err != nil {
				return err
			}
		}
		switch {
		case readOnly && flags&script.NoWrites == 0:
			return command.ReplyError("ERR Can not execute a script with write flag using *_ro command.")
		case c.oom && flags&(script.AllowOOM|script.NoWrites) == 0:
			return command.ErrOOM
		case c.svc.cluster && flags&script.NoCluster != 0:
			return command.ReplyError("ERR Can not run script on cluster, 'no-cluster' flag is set.")
		}
	} else if closed&gateStale != 0 && !c.replay {
		return errMasterDown
	}
	if readOnly {
		flags |= script.NoWrites
	}
	h := startScript(x, name, flags)
	defer h.endScript()
	err := run(h)
	if err == nil && h.failed {
		c.stats.of(x.Spec).Failed.Add(1)
	}
	return err
}

// WithScripts calls run with a host for the command x, in whose transaction all shards are locked. run
// compiles a script or loads libraries, which may take long. loads bounds its time like that of FUNCTION
// LOAD.
func (c *Session) WithScripts(x *command.Ctx, loads bool, run func(h *ScriptHost) error) error {
	h := startScript(x, "", 0)
	h.loads = loads
	defer h.endScript()
	return run(h)
}

// OwnArgs returns the request of x in memory of its own: the arguments of a function become its strings, and
// the function may keep them. On a coroutine, in a transaction and in the background the request already has
// memory of its own.
func (c *Session) OwnArgs(x *command.Ctx) [][]byte {
	if c.coroutine == nil && c.parked == nil && !x.NoWait {
		x.Args = command.CopyArgs(x.Args)
	}
	return x.Args
}

// Debug returns the function that runs the client's next EVAL under a debugger; nil: there is none.
func (c *Session) Debug() func(*command.Ctx) error { return c.debug }

// SetDebug sets what Debug returns.
func (c *Session) SetDebug(eval func(*command.Ctx) error) { c.debug = eval }

// Debugger returns the debugger under which the session's EVAL runs, nil if there is none: see RunDebugged.
func (c *Session) Debugger() script.Console { return c.debugger }

// RunDebugged runs an EVAL of the client under a debugger, in an embedded session of this service, which may
// differ from the client's service. It returns the reply in RESP.
func (s *Service) RunDebugged(client *Session, d script.Console, args [][]byte) (reply []byte, err error) {
	c := s.NewSession(nil)
	defer c.Closed(nil)
	c.setUser(client.user)
	c.dbi, c.debugger, c.quit = client.dbi, d, client.svc.ctx.Done()
	c.out.Proto = client.out.Proto
	c.holds = c.log.Holds()
	c.dispatchSafely(args)
	c.endBatch(0, 0)
	if c.holds.Any() {
		err = c.settled(s.ctx, false)
	}
	return c.out.Buf, err
}

// AddDebugCopy adds n bytes, which may be negative, to the count of data that debugging sessions have copied,
// and returns the sum.
func (s *Service) AddDebugCopy(n int64) int64 { return s.copied.Add(n) }
