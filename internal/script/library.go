package script

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/wire"
)

// Library is a library of functions. It does not change.
type Library struct {
	Name      string
	Code      string
	Functions []*Function // in the order of their names

	values *lua.Table // the functions' closures
	id     int        // their index in the machine's registry
}

// Function is a function of a library. It does not change.
type Function struct {
	Name        string
	Description string
	Described   bool // it has a description, be it empty
	Flags       Flags
	Library     *Library

	callback lua.Value
}

// EngineName is the name of the only engine, in FUNCTION LIST and FUNCTION STATS.
const EngineName = "LUA"

// ErrLoadTimeout is the error of FUNCTION LOAD after LoadTimeout ms.
const (
	ErrLoadTimeout = Error("ERR FUNCTION LOAD timeout")
	LoadTimeout    = 500
)

// The errors of libraries that are not about a text.
const (
	errMetadata     = Error("ERR Invalid library metadata")
	errNoMetadata   = Error("ERR Missing library metadata")
	errNoName       = Error("ERR Library name was not given")
	errTwoNames     = Error("ERR Invalid metadata value, name argument was given multiple times")
	errName         = Error("ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long")
	errNoFunctions  = Error("ERR No functions registered")
	errNoLibrary    = Error("ERR Library not found")
	errPayload      = Error("ERR DUMP payload version or checksum are wrong")
	errNoFunction   = Error("ERR given type is not a function")
	errBadPayload   = Error("ERR Failed loading library payload")
	errOldFunctions = Error("ERR Failed loading engine name")
)

// libraryCost and functionCost are the approximate bytes that the catalogue takes for
// each, besides texts.
const (
	libraryCost  = 256
	functionCost = 256
)

func (l *Library) size() int {
	n := len(l.Name) + len(l.Code) + libraryCost
	for _, f := range l.Functions {
		n += len(f.Name) + len(f.Description) + functionCost
	}
	return n
}

// catalogue holds libraries and their functions.
type catalogue struct {
	libraries map[string]*Library
	functions map[string]*Function // by name in lower case: names differ by more than case
	bytes     int
}

func newCatalogue() catalogue {
	return catalogue{libraries: map[string]*Library{}, functions: map[string]*Function{}}
}

// clash returns the first function of a library whose name is taken already; nil if there
// is none.
func (c *catalogue) clash(l *Library) *Function {
	for _, f := range l.Functions {
		if c.functions[strings.ToLower(f.Name)] != nil {
			return f
		}
	}
	return nil
}

func errExists(f *Function) error { return Error("ERR Function " + f.Name + " already exists") }

// add adds a library. The names of its functions must be free.
func (c *catalogue) add(l *Library) {
	c.libraries[l.Name] = l
	for _, f := range l.Functions {
		c.functions[strings.ToLower(f.Name)] = f
	}
	c.bytes += l.size()
}

func (c *catalogue) remove(l *Library) {
	delete(c.libraries, l.Name)
	for _, f := range l.Functions {
		delete(c.functions, strings.ToLower(f.Name))
	}
	c.bytes -= l.size()
}

// LoadLibrary implements FUNCTION LOAD: it runs the code and returns the library's name.
// It calls only Log and Tick of h; if the load takes too long, Tick returns
// ErrLoadTimeout. The error is an Error, or one of Tick; nothing has changed then.
func (e *Engine) LoadLibrary(code []byte, replace bool, h Host) (name string, err error) {
	m := e.functions
	m.begin(h)
	defer e.finish(m)
	l, err := m.load(string(code), func(name string) bool { return !replace && e.hasLibrary(name) })
	if err != nil {
		return "", err
	}
	if err := e.adopt([]*Library{l}, replace, false); err != nil {
		m.forget(l)
		return "", err
	}
	return l.Name, nil
}

func (e *Engine) hasLibrary(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.library.libraries[name] != nil
}

// adopt adds loaded libraries, all of them or none. With replace they replace libraries of
// the same name, with flush all libraries. It costs O(functions) of the added and the
// replaced libraries.
func (e *Engine) adopt(libraries []*Library, replace, flush bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.settle()
	c := &e.library
	replaced := map[*Library]bool{}
	if !flush {
		for _, l := range libraries {
			if old := c.libraries[l.Name]; old != nil {
				if !replace {
					return Error("ERR Library " + l.Name + " already exists")
				}
				replaced[old] = true
			}
		}
	}
	fresh := newCatalogue() // a catalogue of the new libraries only
	for _, l := range libraries {
		if f := fresh.clash(l); f != nil {
			return errExists(f)
		}
		fresh.add(l)
		for _, f := range l.Functions {
			if old := c.functions[strings.ToLower(f.Name)]; old != nil && !flush && !replaced[old.Library] {
				return errExists(f)
			}
		}
	}
	if flush {
		e.flushLibraries()
	}
	for old := range replaced {
		c.remove(old)
		e.gone = append(e.gone, old)
	}
	for _, l := range libraries {
		c.add(l)
	}
	return nil
}

// load compiles and runs a library's code. exists tells which names are taken.
func (m *machine) load(code string, exists func(name string) bool) (*Library, error) {
	name, body, err := metadata(code)
	if err != nil {
		return nil, err
	}
	if exists(name) {
		return nil, Error("ERR Library '" + name + "' already exists")
	}
	proto, err := compileWithin(m.limit, body, "@user_function", m.tick)
	if e, ok := err.(*lua.Error); ok {
		return nil, Error("ERR Error compiling function: " + e.Error())
	}
	if err != nil {
		return nil, m.failure(err, "")
	}
	l := &Library{Name: name, Code: code}
	return l, m.register(l, proto)
}

// register runs a library's code, in which it registers its functions.
func (m *machine) register(l *Library, proto *lua.Prototype) error {
	l.values = m.state.NewTable(0, 0)
	if err := m.remember(l); err != nil {
		return m.loadFailure(err)
	}
	m.loading = &loading{library: l, names: map[string]bool{}}
	m.expose(m.loadGlobals)

	_, err := m.main.CallHandled(m.handler, lua.ClosureValue(m.state.Bind(proto, m.state.Globals())))

	m.expose(m.runGlobals)
	m.loading = nil
	if err != nil {
		err = m.loadFailure(err)
	} else if len(l.Functions) == 0 {
		err = errNoFunctions
	}
	if err != nil {
		m.forget(l)
		return err
	}
	slices.SortFunc(l.Functions, func(a, b *Function) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// loadFailure returns the error reply for an error of a library's code. It has no position
// except the one in the message.
func (m *machine) loadFailure(err error) error {
	m.where = position{}
	err = m.failure(err, "")
	if text, ok := errors.AsType[Error](err); ok {
		return "ERR Error registering functions: " + text
	}
	return err
}

// remember stores a library's closures in the machine's registry, so that they count as in
// use; forget removes them.
func (m *machine) remember(l *Library) error {
	m.libraries++
	l.id = m.libraries
	return m.state.Registry().SetInt(l.id, lua.TableValue(l.values))
}

func (m *machine) forget(l *Library) { _ = m.state.Registry().SetInt(l.id, lua.Nil) }

// metadata reads the first line of a library, "#!lua name=mylib", and returns the
// name and the text to compile, in which an empty line stands in its place.
func metadata(code string) (name, body string, err error) {
	if !strings.HasPrefix(code, "#!") {
		return "", "", errNoMetadata
	}
	end := strings.IndexByte(code, '\n')
	if end < 0 {
		return "", "", errMetadata
	}
	words, ok := wire.SplitArgs(code[:end])
	if !ok || len(words) == 0 {
		return "", "", errMetadata
	}
	named := false
	for _, w := range words[1:] {
		const prefix = "name="
		switch {
		case len(w) < len(prefix) || !strings.EqualFold(w[:len(prefix)], prefix):
			return "", "", Error("ERR Invalid metadata value given: " + w)
		case named:
			return "", "", errTwoNames
		}
		name, named = w[len(prefix):], true
	}
	engine := words[0][len("#!"):]
	switch {
	case !named:
		return "", "", errNoName
	case !validName(name):
		return "", "", errName
	case !strings.EqualFold(engine, EngineName):
		return "", "", Error("ERR Engine '" + engine + "' not found")
	}
	return name, code[end:], nil
}

// validName reports whether a library or a function may have a name.
func validName(name string) bool {
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// DeleteLibrary implements FUNCTION DELETE. Its error is an Error.
func (e *Engine) DeleteLibrary(name []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.library.libraries[string(name)]
	if l == nil {
		return errNoLibrary
	}
	e.library.remove(l)
	e.settle()
	e.gone = append(e.gone, l)
	return nil
}

// FlushLibraries implements FUNCTION FLUSH.
func (e *Engine) FlushLibraries() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flushLibraries()
	e.settle()
}

func (e *Engine) flushLibraries() {
	for _, l := range e.library.libraries {
		e.gone = append(e.gone, l)
	}
	e.library = newCatalogue()
}

// Libraries returns all libraries in the order of their names.
func (e *Engine) Libraries() []*Library {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.library.sorted()
}

func (c *catalogue) sorted() []*Library {
	all := slices.Collect(maps.Values(c.libraries))
	slices.SortFunc(all, func(a, b *Library) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Function returns a function by its name, without regard to case; nil if there is none.
func (e *Engine) Function(name []byte) *Function {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.library.functions[string(name)]; f != nil {
		return f
	}
	return e.library.functions[strings.ToLower(string(name))]
}
