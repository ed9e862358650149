package objects

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/bloom"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/goredis"
	"github.com/ebbdb/ebb/internal/layouts"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
	"github.com/ebbdb/ebb/near"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/stream"
	"github.com/ebbdb/ebb/topic"
	"github.com/ebbdb/ebb/unique"
)

// packages are the packages of objects.
var packages = []string{"bits", "bloom", "cache", "expmap", "expset", "limit", "lock", "near", "queue", "stream", "topic", "unique"}

// shapeless are exported functions with a Conn whose parameters are in another order, with
// the reason.
var shapeless = map[string]string{
	"lock.Acquire":     "it acquires, so it has a context",
	"topic.PSubscribe": "it subscribes, so it has a context, and its patterns are variadic",
}

// A constructor is func(c *conn.Conn, name string, needed ..., opts ...Options) (*Object, error);
// opts is missing where an object has no options.
func TestEveryConstructorHasTheOneShape(t *testing.T) {
	seen := 0
	eachFunc(t, func(pkg string, fn *ast.FuncDecl) {
		if fn.Recv != nil || constructor(pkg, fn) == "" || shapeless[pkg+"."+fn.Name.Name] != "" {
			return
		}
		seen++
		var names, types []string
		for _, p := range fn.Type.Params.List {
			for _, n := range p.Names {
				names, types = append(names, n.Name), append(types, typeName(p.Type))
				if e, ok := p.Type.(*ast.Ellipsis); ok {
					types[len(types)-1] = "..." + typeName(e.Elt)
				}
			}
		}
		results := fn.Type.Results
		switch {
		case len(names) < 2 || names[0] != "c" || types[0] != "conn.Conn" || names[1] != "name" || types[1] != "string":
			t.Errorf("%s.%s begins with the parameters %v, not with c *conn.Conn, name string", pkg, fn.Name, names)
		case results == nil || len(results.List) != 2 || typeName(results.List[1].Type) != "error":
			t.Errorf("%s.%s does not return an object and an error", pkg, fn.Name)
		}
		for i, typ := range types {
			if last := i == len(types)-1; strings.HasSuffix(typ, "Options") && (!last || names[i] != "opts" || !strings.HasPrefix(typ, "...")) {
				t.Errorf("%s.%s: the parameter %s %s is not opts ...Options, or not the last one", pkg, fn.Name, names[i], typ)
			}
		}
		if n := fn.Name.Name; !strings.HasPrefix(n, "New") {
			t.Errorf("%s.%s is not named New...", pkg, n)
		}
	})
	if seen < 20 {
		t.Errorf("only %d constructors were found", seen)
	}
}

// Each exported function and method that takes optional options is called here with two
// values of them.
func TestTwoOptionsAreAnErrorThatNamesTheirNumber(t *testing.T) {
	c := open(t)
	ctx := t.Context()
	l := must2(limit.New(c, "l", limit.PerSecond(1), limit.FailOpen))(t)
	m := must2(expmap.New(c, "m", expmap.Options[string, string]{Events: true}))(t)
	mf := must2(expmap.NewFamily(c, "mf", expmap.Options[string, string]{Events: true}))(t)
	s := must2(expset.New(c, "s", expset.Options[string]{Events: true}))(t)
	sf := must2(expset.NewFamily(c, "sf", expset.Options[string]{Events: true}))(t)
	q := must2(queue.New[string](c, "q"))(t)
	st := must2(stream.New[string](c, "st"))(t)
	lo := [2]lock.Options{}
	once := must2(lock.NewOnceValue[httpidem.Response](c, "once", time.Hour))(t)
	cases := map[string]func() error{
		"bits.NewCalendar":     func() error { return second(bits.NewCalendar(c, "x", bits.CalendarOptions{}, bits.CalendarOptions{})) },
		"bloom.New":            func() error { return second(bloom.New(c, "x", bloom.Options[string]{}, bloom.Options[string]{})) },
		"cache.New":            func() error { return second(cache.New(c, "x", make([]cache.Options[string, int], 2)...)) },
		"embed.Open":           func() error { return second(embed.Open(ctx, "mem://", embed.Options{}, embed.Options{})) },
		"expmap.New":           func() error { return second(expmap.New(c, "x", make([]expmap.Options[string, int], 2)...)) },
		"expmap.NewFamily":     func() error { return second(expmap.NewFamily(c, "x", make([]expmap.Options[string, int], 2)...)) },
		"expmap.OnExpired":     func() error { return m.OnExpired(ctx, "l", ignore, make([]expmap.ListenOptions, 2)...) },
		"expset.New":           func() error { return second(expset.New(c, "x", make([]expset.Options[int], 2)...)) },
		"expset.NewFamily":     func() error { return second(expset.NewFamily(c, "x", make([]expset.Options[int], 2)...)) },
		"expset.OnExpired":     func() error { return s.OnExpired(ctx, "l", ignoreMember, make([]expset.ListenOptions, 2)...) },
		"goredis.Open":         func() error { return second(goredis.Open(ctx, "redis://127.0.0.1:1", make([]goredis.Options, 2)...)) },
		"limit.New":            func() error { return second(limit.New(c, "x", l.Rate(), limit.FailOpen, make([]limit.Options, 2)...)) },
		"limit.NewConcurrency": func() error { return second(limit.NewConcurrency(c, "x", 1, make([]limit.ConcurrencyOptions, 2)...)) },
		"lock.New":             func() error { return second(lock.New(c, "x", lo[:]...)) },
		"lock.NewFair":         func() error { return second(lock.NewFair(c, "x", lo[:]...)) },
		"lock.NewLatch":        func() error { return second(lock.NewLatch(c, "x", lo[:]...)) },
		"lock.NewLeader":       func() error { return second(lock.NewLeader(c, "x", "me", lo[:]...)) },
		"lock.NewOnce":         func() error { return second(lock.NewOnce(c, "x", time.Second, lo[:]...)) },
		"lock.NewOnceValue": func() error {
			return second(lock.NewOnceValue(c, "x", time.Second, make([]lock.OnceValueOptions[int], 2)...))
		},
		"lock.NewRW":        func() error { return second(lock.NewRW(c, "x", lo[:]...)) },
		"lock.NewSemaphore": func() error { return second(lock.NewSemaphore(c, "x", 1, lo[:]...)) },
		"near.New":          func() error { return second(near.New(c, "x", near.Options{}, near.Options{})) },
		"queue.New":         func() error { return second(queue.New(c, "x", make([]queue.Options[int], 2)...)) },
		"queue.Push":        func() error { return second(q.Push(ctx, "v", queue.PushOptions{}, queue.PushOptions{})) },
		"queue.Peek":        func() error { return second(q.Peek(ctx, queue.All, queue.PeekOptions{}, queue.PeekOptions{})) },
		"queue.Schedule": func() error {
			return second(q.Schedule(ctx, "s", "v", queue.Every(time.Second), queue.ScheduleOptions{}, queue.ScheduleOptions{}))
		},
		"stream.New":   func() error { return second(stream.New(c, "x", make([]stream.Options[int], 2)...)) },
		"stream.Group": func() error { return second(st.Group("g", stream.GroupOptions{}, stream.GroupOptions{})) },
		"stream.AddAt": func() error { return second(st.AddAt(ctx, time.Now(), "v", make([]stream.LaterOptions, 2)...)) },
		"stream.AddAfter": func() error {
			return second(st.AddAfter(ctx, 0, "v", make([]stream.LaterOptions, 2)...))
		},
		"topic.New":     func() error { return second(topic.New(c, "x", make([]topic.Options[int], 2)...)) },
		"unique.New":    func() error { return second(unique.New(c, "x", unique.Options{}, unique.Options{})) },
		"httplimit.New": func() error { return panicked(func() { httplimit.New(l, httplimit.Options{}, httplimit.Options{}) }) },
		"httpidem.New":  func() error { return panicked(func() { httpidem.New(once, httpidem.Options{}, httpidem.Options{}) }) },
		"httplimit.For": func() error {
			return panicked(func() { httplimit.For(l, httplimit.Framework[int]{}, make([]httplimit.OptionsFor[int], 2)...) })
		},
	}
	for name, call := range cases {
		pkg, _, _ := strings.Cut(name, ".")
		err := call()
		if !errors.Is(err, ebb.ErrArgument) || !begins(err, pkg) || !strings.Contains(err.Error(), "2 values of "+pkg+".") {
			t.Errorf("%s with two options: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"ebb.Open":                second(ebb.Open(ctx, "mem://", ebb.Options{}, ebb.Options{})),
		"ebb.Conn.Set":            c.Set(ctx, "k", "v", ebb.SetOptions{NX: true}, ebb.SetOptions{}),
		"expmap.Family.OnExpired": mf.OnExpired(ctx, "l", ignore, make([]expmap.ListenOptions, 2)...),
		"expset.Family.OnExpired": sf.OnExpired(ctx, "l", ignoreMember, make([]expset.ListenOptions, 2)...),
	} {
		if !errors.Is(err, ebb.ErrArgument) || !strings.Contains(err.Error(), "2 values of ") {
			t.Errorf("%s with two options: %v", name, err)
		}
	}
	eachFunc(t, func(pkg string, fn *ast.FuncDecl) {
		for _, p := range fn.Type.Params.List {
			if e, ok := p.Type.(*ast.Ellipsis); ok && strings.Contains(typeName(e.Elt), "Options") && cases[pkg+"."+fn.Name.Name] == nil {
				t.Errorf("%s.%s takes options, and has no row in this test", pkg, fn.Name)
			}
		}
	})
}

// Each constructor that can be given a bad value is called with one.
func TestABadArgumentIsAnErrorThatBeginsWithThePackageAndNamesTheObject(t *testing.T) {
	c := open(t)
	rate := limit.PerSecond(1)
	for name, err := range map[string]error{
		"bits.NewCalendar":     second(bits.NewCalendar(c, "x", bits.CalendarOptions{Keep: -1})),
		"bloom.New":            second(bloom.New(c, "x", bloom.Options[int]{Capacity: -1})),
		"expmap.New":           second(expmap.New(c, "x", expmap.Options[int, int]{IdleTTL: -1})),
		"expmap.NewFamily":     second(expmap.NewFamily(c, "x", expmap.Options[int, int]{LoadLease: -1})),
		"expset.New":           second(expset.New(c, "x", expset.Options[int]{MaxLen: -1})),
		"expset.NewFamily":     second(expset.NewFamily(c, "x", expset.Options[int]{Jitter: -1})),
		"expmap.Layout":        second(expmap.NewFamily(c, "x", expmap.Options[int, int]{Layout: (*expmap.Layout)(layouts.MapCache)})),
		"expset.Layout":        second(expset.NewFamily(c, "x", expset.Options[int]{Layout: (*expset.Layout)(layouts.SetCache)})),
		"limit.New: rate":      second(limit.New(c, "x", limit.PerSecond(0), limit.FailOpen)),
		"limit.New: down":      second(limit.New(c, "x", rate, limit.Local(2))),
		"limit.New: no down":   second(limit.New(c, "x", rate, limit.Down{})),
		"limit.New: timeout":   second(limit.New(c, "x", rate, limit.FailOpen, limit.Options{Timeout: -1})),
		"limit.New: client":    second(limit.New(c, "x", rate, limit.FailOpen, limit.Options{Client: "c"})),
		"limit.NewConcurrency": second(limit.NewConcurrency(c, "x", 0)),
		"limit.lease":          second(limit.NewConcurrency(c, "x", 1, limit.ConcurrencyOptions{Lease: 1})),
		"lock.New":             second(lock.New(c, "x", lock.Options{TTL: 1})),
		"lock.NewFair":         second(lock.NewFair(c, "x", lock.Options{Later: -1})),
		"lock.NewLatch":        second(lock.NewLatch(c, "x", lock.Options{TTL: 1})),
		"lock.NewLeader":       second(lock.NewLeader(c, "x", "")),
		"lock.NewOnce":         second(lock.NewOnce(c, "x", 0)),
		"lock.NewOnceValue":    second(lock.NewOnceValue[int](c, "x", 0)),
		"lock.NewRW":           second(lock.NewRW(c, "x", lock.Options{TTL: -1})),
		"lock.NewSemaphore":    second(lock.NewSemaphore(c, "x", 0)),
		"queue.New":            second(queue.New(c, "x", queue.Options[int]{Lease: -1})),
		"stream.New":           second(stream.New(c, "x", stream.Options[int]{MaxLen: -1})),
		"topic.New":            second(topic.New(c, "x", topic.Options[int]{Backlog: -1})),
		"unique.New":           second(unique.New(c, "x", unique.Options{TTL: -1})),
		"unique.New: bucket":   second(unique.New(c, "x", unique.Options{Bucket: 1})),
	} {
		pkg, _, _ := strings.Cut(name, ".")
		if !errors.Is(err, ebb.ErrArgument) || !begins(err, pkg) || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheErrorsOfOperationsBeginWithThePackage(t *testing.T) {
	c := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n, o := range All() {
		i, err := o.New(c, fmt.Sprint("x", n))
		if err != nil {
			t.Fatal(err)
		}
		pkg, _, _ := strings.Cut(o.Constructor, ".")
		for doing, err := range map[string]error{"use": i.Use(ctx), "delete": del(ctx, i)} {
			if err == nil {
				continue // what a release does, the end of the context does not end
			}
			for line := range strings.Lines(err.Error()) {
				if !begins(errors.New(line), pkg) {
					t.Errorf("%s: %s: the error does not begin with %q: %s", o.Constructor, doing, pkg, line)
				}
			}
		}
	}
}

// An object's error begins with its package; a sentinel that began with it too would say it
// twice. A sentinel that a method returns as it is, or that a caller wraps, begins with it.
func TestASentinelNamesItsPackageOnlyIfItIsReturnedAsItIs(t *testing.T) {
	bare := map[string]bool{"queue.ErrEmpty": true, "queue.ErrPermanent": true}
	found := 0
	eachFile(t, func(pkg string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(v.Names[0].Name, "Err") || len(v.Values) != 1 {
				return true
			}
			call, ok := v.Values[0].(*ast.CallExpr)
			if !ok || typeName(call.Fun) != "errors.New" {
				return true
			}
			found++
			name, text := pkg+"."+v.Names[0].Name, call.Args[0].(*ast.BasicLit).Value
			if strings.HasPrefix(text, `"`+pkg+":") != bare[name] {
				t.Errorf("%s is %s", name, text)
			}
			return true
		})
	})
	if found < 20 {
		t.Errorf("only %d sentinels were found", found)
	}
}

func open(t *testing.T) *ebb.Conn {
	t.Helper()
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func must2[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ignore(context.Context, expmap.Expired[string, string]) error { return nil }

func ignoreMember(context.Context, expset.Expired[string]) error { return nil }

func del(ctx context.Context, i *Instance) error {
	if i.KeepsNothing {
		return nil
	}
	return i.Delete(ctx)
}

// panicked returns the error that fn panics with.
func panicked(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}

// begins reports whether an error begins with a package, as in `lock "x": ...` and
// `lock: leader "x": ...`.
func begins(err error, pkg string) bool {
	return err != nil && regexp.MustCompile(`^`+pkg+`(:| ")`).MatchString(err.Error())
}

// eachFile calls fn with each file of the packages of objects.
func eachFile(t *testing.T, fn func(pkg string, f *ast.File)) {
	t.Helper()
	for _, pkg := range packages {
		names, err := filepath.Glob("../../../" + pkg + "/*.go")
		if err != nil || len(names) == 0 {
			t.Fatal(pkg, names, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			fn(pkg, f)
		}
	}
}

// eachFunc calls fn with each exported function and method.
func eachFunc(t *testing.T, fn func(pkg string, fn *ast.FuncDecl)) {
	t.Helper()
	eachFile(t, func(pkg string, f *ast.File) {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Name.IsExported() {
				fn(pkg, d)
			}
		}
	})
}
