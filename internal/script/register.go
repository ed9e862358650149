package script

import (
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
)

// loading is a library while its code runs.
type loading struct {
	library *Library
	names   map[string]bool
}

// registerFunction implements redis.register_function, in its two forms:
//
//	redis.register_function('name', callback)
//	redis.register_function{function_name = 'name', callback = callback,
//		description = 'text', flags = {'no-writes', ...}}
func (m *machine) registerFunction(c lua.Call) error {
	if m.loading == nil {
		return m.raise("ERR redis.register_function can only be called on FUNCTION LOAD command")
	}
	read := m.positional
	if c.N() == 1 {
		read = m.named
	}
	f, wrong := read(c)
	if wrong == "" {
		wrong = m.loading.add(f)
	}
	if wrong != "" {
		return m.raise("ERR " + wrong)
	}
	return c.Return()
}

// add adds a function to the library, or returns the text of an error.
func (l *loading) add(f *Function) (wrong string) {
	switch {
	case !validName(f.Name):
		return strings.TrimPrefix(string(errName), "ERR ")
	case l.names[f.Name]:
		return "Function already exists in the library"
	}
	l.names[f.Name] = true
	f.Library = l.library
	l.library.Functions = append(l.library.Functions, f)
	if err := l.library.values.SetInt(len(l.library.Functions), f.callback); err != nil {
		return err.Error()
	}
	return ""
}

// positional reads the form with two arguments. wrong is the text of an error.
func (m *machine) positional(c lua.Call) (f *Function, wrong string) {
	if c.N() != 2 {
		return nil, "wrong number of arguments to redis.register_function"
	}
	name, ok := m.textOf(c.Arg(1))
	if !ok {
		return nil, "first argument to redis.register_function must be a string"
	}
	if !c.Arg(2).IsFunction() {
		return nil, "second argument to redis.register_function must be a function"
	}
	return &Function{Name: name, callback: c.Arg(2)}, ""
}

// named reads the form with a table.
func (m *machine) named(c lua.Call) (f *Function, wrong string) {
	t, ok := c.Arg(1).AsTable()
	if !ok {
		return nil, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	f = new(Function)
	hasName := false
	for k, v, at := t.Entry(0); at >= 0; k, v, at = t.Entry(at) {
		key, ok := m.textOf(k)
		if !ok {
			return nil, "named argument key given to redis.register_function is not a string"
		}
		switch strings.ToLower(key) {
		case "function_name":
			if f.Name, hasName = m.textOf(v); !hasName {
				return nil, "function_name argument given to redis.register_function must be a string"
			}
		case "description":
			if f.Description, f.Described = m.textOf(v); !f.Described {
				return nil, "description argument given to redis.register_function must be a string"
			}
		case "callback":
			if !v.IsFunction() {
				return nil, "callback argument given to redis.register_function must be a function"
			}
			f.callback = v
		case "flags":
			flags, ok := v.AsTable()
			if !ok {
				return nil, "flags argument to redis.register_function must be a table representing function flags"
			}
			if f.Flags, ok = functionFlags(flags); !ok {
				return nil, "unknown flag given"
			}
		default:
			return nil, "unknown argument given to redis.register_function"
		}
	}
	switch {
	case !hasName:
		return nil, "redis.register_function must get a function name argument"
	case f.callback.IsNil():
		return nil, "redis.register_function must get a callback argument"
	}
	return f, ""
}

// functionFlags reads a list of flags. ok is false if one of them is unknown.
func functionFlags(t *lua.Table) (flags Flags, ok bool) {
	for i := 1; ; i++ {
		v := t.GetInt(i)
		if v.IsNil() {
			return flags, true
		}
		name, _ := v.AsString()
		flag := flagNamed(name)
		if flag == 0 {
			return 0, false
		}
		flags |= flag
	}
}

// textOf returns the text of a string or a number. It is a copy: the library
// outlives the machine's values.
func (m *machine) textOf(v lua.Value) (text string, ok bool) {
	if !v.IsString() && !v.IsNumber() {
		return "", false
	}
	return strings.Clone(m.text(v)), true
}
