package script

import (
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
)

// globalNames are the globals that scripts see besides Redis's own, in the order in which
// redis-server 7.0.15 creates them, because pairs(_G) depends on it. Redis refuses those
// with a minus, but they leave an empty node in the table. os, which has only clock, comes
// after them, as in Redis since 7.4.
var globalNames = strings.Fields(`
	_G assert collectgarbage -dofile error gcinfo -getfenv getmetatable -loadfile load loadstring next pcall -print
	rawequal rawget rawset select -setfenv setmetatable tonumber tostring type unpack xpcall _VERSION ipairs pairs
	-newproxy coroutine table string math debug cjson struct cmsgpack bit`)

// field is a field of a table that is made here.
type field struct {
	name  string
	value lua.Value
}

func function(name string, run func(lua.Call) error) field {
	return field{name, lua.BuiltinValue(&lua.Builtin{Name: name, Run: run})}
}

// set sets fields of a table. Tables are made before the machine has a memory
// limit, so nothing can fail.
func set(t *lua.Table, fields ...field) {
	for _, f := range fields {
		_ = t.SetString(f.name, f.value)
	}
}

// sandboxScripts makes the environment of EVAL's scripts: read-only globals, with KEYS and
// ARGV among them. Those two are the same tables in every run, and are emptied between
// runs. No script can keep them, because nothing that a script can write to outlives its
// run.
func (m *machine) sandboxScripts(o Options) {
	globals := m.globals(o)
	api := m.runAPI(o)
	set(api, m.debugAPI()...)
	handler := lua.BuiltinValue(&lua.Builtin{Name: "__redis__err__handler", Run: m.errorHandler})
	m.keys, m.argv = m.state.NewTable(0, 0), m.state.NewTable(0, 0)
	set(globals,
		field{"redis", lua.TableValue(api)},
		field{"debug", lua.Nil},
		field{"__redis__err__handler", handler},
		field{"KEYS", lua.TableValue(m.keys)},
		field{"ARGV", lua.TableValue(m.argv)})
	if o.Own != "" {
		set(globals, field{"server", lua.TableValue(api)}, field{"__server__err__handler", handler})
	}
	m.strict(globals)
	seal(globals)
	m.keys.SetReadonly(false)
	m.argv.SetReadonly(false)
	m.state.SetGlobals(globals)
}

// sandboxFunctions makes the environment of libraries: an empty table that finds
// its globals elsewhere, by the __index of its metatable. That is a table with
// nothing but a small redis while a library is loaded, and all globals while
// functions run; the functions' environment stays the same.
//
//	environment {} -> __index -> load-time globals {redis = {register_function, log...}}
//	                          or globals           {_G, pairs, ..., redis = {call, ...}}
//
// server is the same table as redis everywhere, as in Valkey.
func (m *machine) sandboxFunctions(o Options) {
	globals := m.globals(o)
	api := lua.TableValue(m.runAPI(o))
	set(globals, field{"redis", api}, field{"debug", lua.Nil})
	m.strict(globals)

	loadAPI, loadGlobals := m.state.NewTable(0, 0), m.state.NewTable(0, 0)
	set(loadAPI, function("register_function", m.registerFunction))
	set(loadAPI, m.logAPI()...)
	set(loadAPI, versionAPI(o)...)
	set(loadGlobals, field{"redis", lua.TableValue(loadAPI)})
	if o.Own != "" {
		set(globals, field{"server", api})
		set(loadGlobals, field{"server", lua.TableValue(loadAPI)})
	}
	m.strict(loadAPI)
	m.strict(loadGlobals)

	seal(globals)
	seal(loadGlobals)
	m.runGlobals, m.loadGlobals = lua.TableValue(globals), lua.TableValue(loadGlobals)
	environment := m.state.NewTable(0, 0)
	m.lookup = m.state.NewTable(0, 0)
	m.expose(m.runGlobals)
	_ = environment.SetMeta(m.lookup)
	environment.SetReadonly(true)
	m.state.SetGlobals(environment)
}

// runAPI returns the table redis for running scripts and functions.
func (m *machine) runAPI(o Options) *lua.Table {
	api := m.state.NewTable(0, 0)
	set(api, m.callAPI()...)
	set(api, m.logAPI()...)
	set(api, versionAPI(o)...)
	set(api, m.replyAPI()...)
	return api
}

// expose chooses the globals that libraries see.
func (m *machine) expose(globals lua.Value) { set(m.lookup, field{"__index", globals}) }

// globals opens the libraries and returns a table of what scripts may see of
// them.
func (m *machine) globals(o Options) *lua.Table {
	m.state.OpenLibs()
	openCJSON(m.state)
	openStruct(m.state)
	openMsgpack(m.state)
	openBit(m.state)
	all, globals := m.state.Globals(), m.state.NewTable(0, 0)
	set(all, function("pcall", m.pcall), field{"_G", lua.TableValue(globals)})
	set(all, field{"debug", lua.True}) // until the environment is complete
	for _, name := range globalNames {
		if refused, ok := strings.CutPrefix(name, "-"); ok {
			set(globals, field{refused, lua.True}, field{refused, lua.Nil})
			continue
		}
		set(globals, field{name, all.GetString(name)})
	}
	if o.Own != "" {
		system := m.state.NewTable(0, 0)
		set(system, function("clock", func(c lua.Call) error { return c.Return(lua.Number(o.cpu())) }))
		set(globals, field{"os", lua.TableValue(system)})
	}

	// The metatable of strings must be sealed too.
	meta := m.state.NewTable(0, 0)
	set(meta, field{"__index", all.GetString("string")})
	seal(meta)
	m.state.SetStringMeta(meta)
	return globals
}

// strict makes it an error to read a field of the table that does not exist.
func (m *machine) strict(t *lua.Table) {
	meta := m.state.NewTable(0, 0)
	set(meta, function("__index", missingGlobal))
	_ = t.SetMeta(meta)
}

// seal makes a table read-only, with its metatable and all tables in it.
func seal(t *lua.Table) {
	if t.Readonly() {
		return
	}
	t.SetReadonly(true)
	if meta := t.Meta(); meta != nil {
		seal(meta)
	}
	for _, v, at := t.Entry(0); at >= 0; _, v, at = t.Entry(at) {
		if inner, is := v.AsTable(); is {
			seal(inner)
		}
	}
}

// missingGlobal returns the __index of global tables.
func missingGlobal(c lua.Call) error {
	if c.N() != 2 {
		return c.Errorf("Wrong number of arguments to luaProtectedTableError")
	}
	if k := c.Arg(2); !k.IsString() && !k.IsNumber() {
		return c.Errorf("Second argument to luaProtectedTableError must be a string or number")
	}
	name, err := c.CheckString(2)
	if err != nil {
		return err
	}
	return c.Errorf("Script attempted to access nonexistent global variable '%s'", name)
}

// pcall behaves as Lua's, but for an error table it returns the table's text. So scripts
// still work that were written when errors of commands were strings.
func (m *machine) pcall(c lua.Call) error {
	f, args := lua.True, []lua.Value(nil) // of no arguments it calls its own "true"
	if c.N() > 0 {
		f = c.Arg(1)
		args = make([]lua.Value, c.N()-1)
		for i := range args {
			args[i] = c.Arg(i + 2)
		}
	}
	results, err := c.Thread().PCall(f, args...)
	if err == nil {
		place, err := c.Results(len(results) + 1)
		if err != nil {
			return err
		}
		copy(place[1:], results)
		place[0] = lua.True
		return nil
	}
	e, ok := err.(*lua.Error)
	if !ok {
		return err
	}
	if !e.Value.IsTable() {
		return c.Return(lua.False, e.Value)
	}
	text, err := c.Thread().Index(e.Value, lua.String("err")) // with its metamethod, whose errors are not caught here
	if err != nil {
		return err
	}
	if text.IsString() || text.IsNumber() {
		return c.Return(lua.False, text)
	}
	return c.Return(lua.False, e.Value, text) // the last is what Redis leaves on its stack
}

// errorHandler implements __redis__err__handler, which scripts may pass to xpcall. It
// converts an error to an error table with its position.
func (m *machine) errorHandler(c lua.Call) error {
	t, ok := c.Arg(1).AsTable()
	if !ok {
		text, err := c.Thread().ToString(c.Arg(1))
		if err != nil {
			return err
		}
		t = m.state.NewTable(0, 3)
		if err := t.SetString("err", lua.String("ERR "+text)); err != nil {
			return err
		}
	}
	at := m.handlerPosition()
	if at.source != "" {
		if err := t.SetString("source", lua.String(at.source)); err != nil {
			return err
		}
		if err := t.SetString("line", lua.Int(at.line)); err != nil {
			return err
		}
	}
	return c.Return(lua.TableValue(t))
}
