package script

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/wire"
)

// Script is a compiled script, as EVAL and SCRIPT LOAD know it. Its exported
// fields do not change.
type Script struct {
	SHA   string // 40 hexadecimal digits, in lower case
	Body  string
	Flags Flags

	proto *lua.Prototype
	main  *lua.Closure // made at the first run, by the goroutine that runs it

	loaded       bool    // by SCRIPT LOAD: it is not in the list of those that may go
	newer, older *Script // its place in that list
}

// The limits of the cache of scripts of EVAL. Redis 7.4 keeps 500, because some programs
// put values into the texts of their scripts. The limit of bytes is for 500 long scripts.
const (
	maxScripts     = 500
	maxScriptBytes = 16 << 20
)

// scriptCost is the approximate number of bytes of a script besides its text and its compiled form:
// its entries in the maps, and itself.
const scriptCost = 256

// size returns what the cache counts for a script.
func (s *Script) size() int { return len(s.Body) + s.proto.Size() + scriptCost }

// cache holds the compiled scripts, by text and by SHA1. Scripts of EVAL form a list, from
// the most recently used to the least recently used, which is evicted next:
//
//	ends.older -> used last ... used least -> ends.newer
type cache struct {
	byText map[string]*Script
	bySHA  map[string]*Script
	bytes  int // size of all

	ends     Script // the list's beginning and end
	evicting struct{ scripts, bytes int }
	evicted  int // the number of evicted scripts
}

func (c *cache) reset() {
	*c = cache{byText: map[string]*Script{}, bySHA: map[string]*Script{}, evicted: c.evicted}
	c.ends.newer, c.ends.older = &c.ends, &c.ends
}

func (s *Script) unlink() {
	s.newer.older, s.older.newer = s.older, s.newer
	s.newer, s.older = nil, nil
}

// first puts a script that is in no list at the beginning.
func (c *cache) first(s *Script) {
	s.newer, s.older = &c.ends, c.ends.older
	s.newer.older, s.older.newer = s, s
}

// use marks a script as used. With load, the cache keeps it until a flush.
func (c *cache) use(s *Script, load bool) {
	switch {
	case s.loaded:
	case load:
		s.unlink()
		s.loaded = true
		c.evicting.scripts--
		c.evicting.bytes -= s.size()
	case c.ends.older != s:
		s.unlink()
		c.first(s)
	}
}

// add adds a new script, and evicts others if there are too many.
func (c *cache) add(s *Script) {
	c.byText[s.Body], c.bySHA[s.SHA] = s, s
	c.bytes += s.size()
	c.evicting.scripts++
	c.evicting.bytes += s.size()
	c.first(s)
	for c.evicting.scripts > maxScripts || c.evicting.bytes > maxScriptBytes && c.evicting.scripts > 1 {
		last := c.ends.newer
		last.unlink()
		delete(c.byText, last.Body)
		delete(c.bySHA, last.SHA)
		c.bytes -= last.size()
		c.evicting.scripts--
		c.evicting.bytes -= last.size()
		c.evicted++
	}
}

// Script returns the compiled script of a text: the one that is cached, which costs a map
// lookup, or a new one. Errors: Error, about the shebang line or with the compiler's
// message.
func (e *Engine) Script(body []byte) (*Script, error) { return e.script(body, false, nil) }

// ScriptTicking returns a script as Script does. It calls tick about every 200 us while it
// compiles; an error of tick ends the compilation.
func (e *Engine) ScriptTicking(body []byte, tick func() error) (*Script, error) {
	return e.script(body, false, tick)
}

// Load returns a script as Script does, for SCRIPT LOAD: the script stays until Flush.
func (e *Engine) Load(body []byte) (*Script, error) { return e.script(body, true, nil) }

func (e *Engine) script(body []byte, load bool, tick func() error) (*Script, error) {
	e.mu.Lock()
	s := e.cache.byText[string(body)]
	if s != nil {
		e.cache.use(s, load)
	}
	e.mu.Unlock()
	if s != nil {
		return s, nil
	}

	fresh, err := compile(string(body), e.scripts.limit, tick)
	if err != nil {
		return nil, err
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.settle()
	s = e.cache.byText[fresh.Body]
	if s == nil { // no other caller was faster
		s = fresh
		e.cache.add(s)
	}
	e.cache.use(s, load)
	return s, nil
}

// BySHA returns a cached script by its 40 hexadecimal digits, in either case; nil
// if there is none.
func (e *Engine) BySHA(sha []byte) *Script {
	var lower [40]byte
	if len(sha) != len(lower) {
		return nil
	}
	for i, c := range sha {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.cache.bySHA[string(lower[:])]
	if s != nil {
		e.cache.use(s, false)
	}
	return s
}

// Exists reports whether a script is cached, for SCRIPT EXISTS: the script does
// not count as used.
func (e *Engine) Exists(sha []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.cache.bySHA[strings.ToLower(string(sha))]
	return ok
}

// Entry is a script in the cache.
type Entry struct {
	SHA, Body string
	Loaded    bool // by SCRIPT LOAD: it stays until Flush
}

// Cached returns at most limit cached scripts: those of EVAL, the most recently used first, and then those of Load, sorted by
// SHA. The scripts do not count as used.
func (e *Engine) Cached(limit int) []Entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Entry
	for s := e.cache.ends.older; s != &e.cache.ends && len(all) < limit; s = s.older {
		all = append(all, Entry{s.SHA, s.Body, false})
	}
	var loaded []Entry
	for _, s := range e.cache.bySHA {
		if s.loaded {
			loaded = append(loaded, Entry{s.SHA, s.Body, true})
		}
	}
	slices.SortFunc(loaded, func(a, b Entry) int { return strings.Compare(a.SHA, b.SHA) })
	return append(all, loaded[:min(len(loaded), limit-len(all))]...)
}

// Flush removes all scripts from the cache.
func (e *Engine) Flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cache.reset()
	e.settle()
}

// scriptChunk is the name of a script in messages.
const scriptChunk = "@user_script"

// compile makes a script of a text.
func compile(body string, limit int, tick func() error) (*Script, error) {
	flags, code, err := shebang(body)
	if err != nil {
		return nil, err
	}
	proto, err := compileWithin(limit, code, scriptChunk, tick)
	if e, ok := err.(*lua.Error); ok {
		return nil, Error("ERR Error compiling script (new function): " + e.Error())
	}
	if err != nil {
		return nil, err
	}
	return &Script{SHA: hexSHA1(body), Body: body, Flags: flags, proto: proto}, nil
}

// compileWithin compiles a chunk if that takes no more memory than the limit, if
// there is one. An error that is no *lua.Error is tick's.
func compileWithin(limit int, code, name string, tick func() error) (*lua.Prototype, error) {
	if limit > 0 && len(code)*lua.CompileMemory > limit {
		return nil, errMemory
	}
	return lua.CompileTicking(code, name, tick)
}

// Declared returns the flags that a script's shebang line declares. ok is false where
// the script has no such line, or one that is wrong.
func Declared(body []byte) (f Flags, ok bool) {
	if !bytes.HasPrefix(body, []byte("#!")) {
		return 0, false
	}
	line, _, found := bytes.Cut(body, []byte("\n"))
	if !found {
		return 0, false
	}
	f, _, err := shebang(string(line) + "\n")
	return f, err == nil
}

// shebang reads the first line of a script, if it is one of
//
//	#!lua
//	#!lua flags=no-writes,allow-oom
//
// and returns the flags and the text to compile, in which an empty line stands
// in its place.
func shebang(body string) (flags Flags, code string, err error) {
	if !strings.HasPrefix(body, "#!") {
		return Compat, body, nil
	}
	end := strings.IndexByte(body, '\n')
	if end < 0 {
		return 0, "", Error("ERR Invalid script shebang")
	}
	words, ok := wire.SplitArgs(body[:end])
	if !ok || len(words) == 0 {
		return 0, "", Error("ERR Invalid engine in script shebang")
	}
	if !strings.EqualFold(words[0], "#!lua") {
		return 0, "", Error("ERR Unexpected engine in script shebang: " + words[0])
	}
	for _, option := range words[1:] {
		list, ok := strings.CutPrefix(option, "flags=")
		if !ok {
			return 0, "", Error("ERR Unknown lua shebang option: " + option)
		}
		if list == "" {
			continue
		}
		for _, name := range strings.Split(list, ",") {
			flag := flagNamed(name)
			if flag == 0 {
				return 0, "", Error("ERR Unexpected flag in script shebang: " + name)
			}
			flags |= flag
		}
	}
	return flags, body[end:], nil
}
