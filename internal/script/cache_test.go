package script

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/wire"
)

func mustScript(t *testing.T, e *Engine, text string) *Script {
	t.Helper()
	s, err := e.Script([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScriptsAreFoundByTextAndSHA(t *testing.T) {
	e := New(testOptions)
	s := mustScript(t, e, "return 1")
	if s.SHA != "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" || s.Body != "return 1" || s.Flags != Compat {
		t.Errorf("%+v", s)
	}
	if mustScript(t, e, "return 1") != s || e.BySHA([]byte(s.SHA)) != s || e.BySHA([]byte(strings.ToUpper(s.SHA))) != s {
		t.Error("it is not the same script")
	}
	for _, sha := range []string{"", "x", s.SHA[1:], s.SHA + "0", strings.Repeat("a", 40)} {
		if e.BySHA([]byte(sha)) != nil || e.Exists([]byte(sha)) {
			t.Errorf("%q exists", sha)
		}
	}
	if !e.Exists([]byte(strings.ToUpper(s.SHA))) {
		t.Error("it does not exist")
	}
	e.Flush()
	if e.BySHA([]byte(s.SHA)) != nil || e.Exists([]byte(s.SHA)) || e.Stats().Scripts != 0 || e.Stats().ScriptBytes != 0 {
		t.Error("it outlived a flush")
	}
	if got := eval(e, quietHost{}, 2, "return 1"); got != ":1\r\n" {
		t.Errorf("%q", got)
	}
}

func TestCachedScriptsAreListedWithoutUse(t *testing.T) {
	e := New(testOptions)
	if _, err := e.Load([]byte("return 0")); err != nil {
		t.Fatal(err)
	}
	mustScript(t, e, "return 1")
	mustScript(t, e, "return 2")
	for range 2 {
		var bodies []string
		for _, x := range e.Cached(10) {
			bodies = append(bodies, fmt.Sprint(x.Body, x.Loaded))
		}
		if got, want := strings.Join(bodies, ", "), "return 2false, return 1false, return 0true"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if all := e.Cached(1); len(all) != 1 || all[0].Body != "return 2" {
		t.Errorf("%+v", all)
	}
}

// Of scripts that EVAL brought the ones used last stay; those of SCRIPT LOAD all.
func TestCacheKeepsWhatIsUsedAndLoaded(t *testing.T) {
	e := New(testOptions)
	text := func(i int) string { return fmt.Sprint("return ", i) }
	var loaded, used []*Script
	for i := range 3 {
		s, err := e.Load([]byte(text(i)))
		if err != nil {
			t.Fatal(err)
		}
		loaded = append(loaded, s)
	}
	used = append(used, mustScript(t, e, "return 'text'"), mustScript(t, e, "return 'sha'"))
	late := mustScript(t, e, "return 'late'")
	if s, err := e.Load([]byte(late.Body)); err != nil || s != late {
		t.Fatal("loading made another script", err)
	}
	first := mustScript(t, e, text(10))
	for i := range 2 * maxScripts {
		mustScript(t, e, text(100+i))
		if mustScript(t, e, used[0].Body) != used[0] || e.BySHA([]byte(used[1].SHA)) != used[1] {
			t.Fatal("a script in use is gone")
		}
	}
	if e.Exists([]byte(first.SHA)) {
		t.Error("a script that is not in use stayed")
	}
	for _, s := range append(loaded, late) {
		if e.BySHA([]byte(s.SHA)) != s {
			t.Errorf("%q is gone", s.Body)
		}
	}
	if got, want := e.Stats().Scripts, maxScripts+4; got != want {
		t.Errorf("%d scripts, want %d", got, want)
	}
	checkCache(t, e)

	// Long texts go earlier.
	for i := range 10 {
		mustScript(t, e, fmt.Sprint("return ", i, " --", strings.Repeat("x", maxScriptBytes/16)))
	}
	if e.cache.evicting.bytes > maxScriptBytes {
		t.Errorf("%d bytes", e.cache.evicting.bytes)
	}
	checkCache(t, e)
}

// checkCache verifies the cache's counts and its list.
func checkCache(t *testing.T, e *Engine) {
	t.Helper()
	c := &e.cache
	bytes, listed, listedBytes := 0, 0, 0
	for text, s := range c.byText {
		if s.Body != text || c.bySHA[s.SHA] != s {
			t.Errorf("%.20q is %.20q", text, s.Body)
		}
		bytes += s.size()
	}
	for s := c.ends.older; s != &c.ends; s = s.older {
		if s.loaded || s.older.newer != s || c.byText[s.Body] != s {
			t.Errorf("%.20q is wrong in the list", s.Body)
		}
		listed++
		listedBytes += s.size()
	}
	if bytes != c.bytes || listed != c.evicting.scripts || listedBytes != c.evicting.bytes || len(c.byText) != len(c.bySHA) {
		t.Errorf("%d of %d bytes, %d of %d scripts with %d of %d bytes in the list",
			c.bytes, bytes, c.evicting.scripts, listed, c.evicting.bytes, listedBytes)
	}
}

// Goroutines may read and change the catalogue while code runs.
func TestCatalogueIsSafeBesideARun(t *testing.T) {
	e := New(testOptions)
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for j := range 200 {
				text := fmt.Sprintf("return %d", i*100+j%50)
				s, err := e.Script([]byte(text))
				if err != nil {
					t.Error(err)
					return
				}
				e.BySHA([]byte(s.SHA))
				e.Exists([]byte(s.SHA))
				e.Function([]byte("f"))
				e.Libraries()
				e.Stats()
				_ = e.DeleteLibrary([]byte("lib"))
				if j%20 == 0 {
					e.Flush()
					e.FlushLibraries()
				}
			}
		})
	}
	for range 200 {
		eval(e, quietHost{}, 2, "return 1")
		if _, err := e.LoadLibrary([]byte(libraryCode("lib", "f")), true, quietHost{}); err != nil {
			t.Error(err)
		}
		if f := e.Function([]byte("F")); f != nil {
			var out wire.Writer
			if err := e.CallFunction(f, quietHost{}, nil, nil, &out); err != nil {
				t.Error(err)
			}
		}
	}
	others.Wait()
	e.FlushLibraries()
	if s := e.Stats(); s.Libraries != 0 || s.FunctionBytes != 0 {
		t.Errorf("%+v", s)
	}
}

// TestScriptsCountAsWhatTheyTake compares the sizes that scripts count with what Go's heap grows by.
func TestScriptsCountAsWhatTheyTake(t *testing.T) {
	code := strings.Repeat("t[#t+1] = redis.call('get', KEYS[1]) ", 200)
	for what, body := range map[string]func(i int) string{
		"short":      func(i int) string { return fmt.Sprint("return ", i) },
		"a comment":  func(i int) string { return fmt.Sprint("return ", i, " --", strings.Repeat("x", 10_000)) },
		"a constant": func(i int) string { return fmt.Sprint("local s = '", strings.Repeat("x", 10_000), "' return ", i) },
		"code":       func(i int) string { return fmt.Sprint("local t = {} ", code, "return ", i) },
	} {
		e := New(Options{})
		heap := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, counted := heap(), e.Stats().ScriptBytes
		for i := range 1000 {
			if _, err := e.Load([]byte(body(i))); err != nil {
				t.Fatal(err)
			}
		}
		grown := heap() - before
		if got := int64(e.Stats().ScriptBytes - counted); got < grown*3/4 || got > grown*3/2 {
			t.Errorf("%s: 1000 scripts take %d bytes and count %d", what, grown, got)
		}
		runtime.KeepAlive(e)
	}
}
