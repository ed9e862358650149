package script

import (
	"fmt"
	"runtime"
	"testing"
)

// TestLoadingALibraryCostsTheSameBesideManyOthers counts what a load allocates: a copy
// of a catalogue of 5,000 libraries would be some hundred KB.
func TestLoadingALibraryCostsTheSameBesideManyOthers(t *testing.T) {
	e := New(Options{})
	loadOne := func(i int) {
		code := libraryCode(fmt.Sprint("lib", i), fmt.Sprint("f", i))
		if _, err := e.LoadLibrary([]byte(code), true, quietHost{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5000 {
		loadOne(i)
	}
	const loads = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range loads {
		loadOne(17)
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / loads; bytes > 64<<10 {
		t.Errorf("a load beside 5,000 libraries allocates %d bytes", bytes)
	}
	if n := len(e.Libraries()); n != 5000 {
		t.Errorf("%d libraries, want 5000", n)
	}
}

// TestALoadThatFailsChangesNothing loads what clashes with others' functions: by
// itself, in place of a library, and in a payload.
func TestALoadThatFailsChangesNothing(t *testing.T) {
	e := New(Options{})
	for _, name := range []string{"a", "b"} {
		if _, err := e.LoadLibrary([]byte(libraryCode(name, "f"+name)), false, quietHost{}); err != nil {
			t.Fatal(err)
		}
	}
	other := New(Options{})
	for name, function := range map[string]string{"a": "fb", "c": "fc"} {
		if _, err := other.LoadLibrary([]byte(libraryCode(name, function)), false, quietHost{}); err != nil {
			t.Fatal(err)
		}
	}
	before := e.Stats()
	for name, load := range map[string]func() error{
		"a function of another": func() error { _, err := e.LoadLibrary([]byte(libraryCode("c", "FA")), false, quietHost{}); return err },
		"in place of a library": func() error { _, err := e.LoadLibrary([]byte(libraryCode("a", "fb")), true, quietHost{}); return err },
		"a payload that adds":   func() error { return e.RestoreLibraries(other.DumpLibraries(), Append, quietHost{}) },
		"a payload in place":    func() error { return e.RestoreLibraries(other.DumpLibraries(), Replace, quietHost{}) },
	} {
		if load() == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	after := e.Stats()
	if before.Libraries != after.Libraries || before.Functions != after.Functions || before.FunctionBytes != after.FunctionBytes {
		t.Errorf("was %+v, is %+v", before, after)
	}
	for name, library := range map[string]string{"fa": "a", "fb": "b"} {
		if f := e.Function([]byte(name)); f == nil || f.Library.Name != library {
			t.Errorf("%s is %+v", name, f)
		}
	}
	if err := e.RestoreLibraries(other.DumpLibraries(), Flush, quietHost{}); err != nil {
		t.Error(err)
	}
	if f := e.Function([]byte("fb")); f == nil || f.Library.Name != "a" || e.Function([]byte("fa")) != nil {
		t.Errorf("after FLUSH fb is %+v", f)
	}
}
