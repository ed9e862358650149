package backends

import "testing"

// probe is a test that ends by a panic of its own, so that the test of it continues.
type probe struct {
	testing.TB
	failed, skipped string
}

func (p *probe) Helper() {}
func (p *probe) Fatal(args ...any) {
	p.failed = args[0].(string)
	panic(p)
}

func (p *probe) Skip(args ...any) {
	p.skipped = args[0].(string)
	panic(p)
}

// ended runs f with a probe until f ends it.
func ended(f func(p *probe)) (p *probe) {
	p = &probe{}
	defer func() {
		if r := recover(); r != nil && r != any(p) {
			panic(r)
		}
	}()
	f(p)
	return p
}

func TestServersThatDoNotStartAreTriedOnce(t *testing.T) {
	h := &sharedServers{sites: map[string]site{}, failed: map[string]missing{}}
	h.main.Store(true)
	starts := 0
	k := kind{name: "broken", start: func(t testing.TB) site {
		starts++
		t.Errorf("it does not end within %v", 1)
		return site{}
	}}
	for range 3 {
		if p := ended(func(p *probe) { h.site(p, k) }); p.failed != "it does not end within 1" || p.skipped != "" {
			t.Errorf("the test ends with %q, %q", p.failed, p.skipped)
		}
	}
	if starts != 1 {
		t.Errorf("started %d times", starts)
	}
}

func TestAServerThatDoesNotStartAgainEndsTheTestAlone(t *testing.T) {
	k := kind{name: "fragile", start: func(t testing.TB) site { return site{fault: func() { t.Fatal("it does not start") }} }}
	p := ended(func(p *probe) { (&Backend{Kind: k.name, t: p, site: servers.site(p, k)}).Fault() })
	later := ended(func(p *probe) { servers.site(p, k) })
	if p.failed != "it does not start" || later.failed != p.failed {
		t.Errorf("the test ends with %q, a later one with %q", p.failed, later.failed)
	}
}
