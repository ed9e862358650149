package commands_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// routed returns the keys, the first key and the route that a client's routing table gives for a request.
func routed(args [][]byte) (keys []int, first, route int) {
	word := func(i int) string { return string(args[i]) }
	c := routing.Of(len(args), word)
	return c.AppendKeys(nil, len(args), word), c.FirstKey(len(args), word), c.Route(len(args), word)
}

// compareRouting fails the test if client and server find different keys in a request. If the server rejects
// the request, it only checks that the positions exist.
func compareRouting(t *testing.T, table *command.Table, args [][]byte) {
	t.Helper()
	got, first, route := routed(args)
	for _, at := range append([]int{first, route}, got...) {
		if at < 0 || at >= len(args) {
			t.Fatalf("%q: a client looks for a key at %d", args, at)
		}
	}
	spec, err := table.Resolve(args)
	if err != nil {
		return
	}
	var want []int
	refs, err := spec.AppendKeys(nil, args)
	if err == nil {
		for _, r := range refs {
			want = append(want, r.Pos)
		}
	}
	for _, k := range spec.AllKeySpecs() {
		if k.Flags&command.NotKey != 0 { // the channels of a shard
			for p, last := k.Index, len(args)-1; p <= last && (k.Last < 0 || p <= k.Index+k.Last); p += k.Step {
				want = append(want, p)
			}
		}
	}
	wantFirst := 0
	if len(want) > 0 {
		wantFirst = want[0]
	}
	wantRoute := wantFirst
	if spec.Name == "publish" {
		wantRoute = 1
	}
	if !slices.Equal(got, want) || first != wantFirst || route != wantRoute {
		t.Fatalf("%q: a client finds the keys at %v, the first at %d, and routes by %d; the server finds them at %v",
			args, got, first, route, want)
	}
}

// A client finds keys with its own table, which is generated from the Specs. Client and server must agree for
// every example, for every line of a transcript, and for random requests, whole and damaged.
func TestClientsFindTheKeysWhereTheServerDoes(t *testing.T) {
	tier.Sequential(t)
	table := services.Table(t)
	compare := func(cases []transcript.Case) {
		for i := range cases {
			for _, s := range cases[i].Steps {
				if s.Kind == transcript.Request && len(s.Args) > 0 {
					compareRouting(t, table, services.Bytes(s.Args))
				}
			}
		}
	}
	for _, path := range files(t) {
		cases, err := transcript.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		compare(cases)
	}
	pools := &command.Pools{Keys: []string{"a", "b", "", "store", "keys", "streams"},
		Strings: []string{"STORE", "KEYS", "COUNT", "2", "TO", "x", ""}}
	for id := range table.Len() {
		spec := table.Spec(id)
		compare(example(t, spec))
		rng := spec.Source(1)
		for range 100 {
			args := command.Generate(rng, spec, pools)
			compareRouting(t, table, args)
			compareRouting(t, table, command.Damage(rng, args, 1))
			compareRouting(t, table, args[:1+rng.IntN(len(args))])
		}
	}
}

// connectionState returns the state of each connection by its id, from CLIENT LIST.
func connectionState(e *transcript.Engine) (map[string]string, error) {
	const observer = 1000
	if err := e.Send(observer, []string{"CLIENT", "LIST"}); err != nil {
		return nil, err
	}
	v, ok := e.Next(observer)
	if !ok || v.Kind == resp.KindError {
		return nil, errors.New("the observer may not look")
	}
	all := map[string]string{}
	for line := range strings.Lines(v.Str) {
		id := ""
		var state []string
		for field := range strings.FieldsSeq(line) {
			name, val, _ := strings.Cut(field, "=")
			switch name {
			case "id":
				id = val
			case "multi":
				state = append(state, map[bool]string{true: "multi"}[val != "-1"])
			case "flags": // blocked, dirty and closing come and go within a call
				state = append(state, strings.Map(func(r rune) rune {
					if strings.ContainsRune("NbdciuUAR", r) {
						return -1
					}
					return r
				}, val))
			case "name", "db", "sub", "psub", "ssub", "watch", "user", "redir", "resp", "lib-name", "lib-ver":
				state = append(state, field)
			}
		}
		all[id] = strings.Join(state, " ")
	}
	return all, nil
}

// stateWatcher is a target of transcripts that fails the test if a request leaves a
// connection in another state although its Spec is not Stateful.
type stateWatcher struct {
	*transcript.Engine
	t     *testing.T
	table *command.Table
	found map[string]bool // the commands that changed a connection's state
	ids   map[int]string  // the id of each connection
	last  map[string]string
	fresh string // the state of a new connection
}

func (w *stateWatcher) Send(n int, args []string) error {
	if err := w.Engine.Send(n, args); err != nil {
		return err
	}
	before := w.last
	if err := w.look(); err != nil || before == nil {
		return nil //nolint:nilerror // a transcript may take the observer's permissions away
	}
	for id := range w.last {
		if before[id] == "" {
			w.ids[n], before[id] = id, w.fresh
		}
	}
	old, state := before[w.ids[n]], w.last[w.ids[n]]
	spec, err := w.table.Find(services.Bytes(args))
	ended := strings.Contains(old, " multi ") && !strings.Contains(state, " multi ") // CLIENT LIST may show that late, after a refused EXEC
	if err != nil || state == "" || state == old || ended {
		return nil //nolint:nilerror // an unknown command changes nothing
	}
	w.found[spec.Name] = true
	if spec.Client&command.Stateful == 0 {
		w.t.Errorf("%q changes its connection from %q to %q: its Spec needs Client: Stateful", args, old, state)
	}
	return nil
}

func (w *stateWatcher) Advance(d time.Duration) error {
	err := w.Engine.Advance(d)
	_ = w.look() // see Send
	return err
}

func (w *stateWatcher) look() error {
	var err error
	w.last, err = connectionState(w.Engine)
	return err
}

// connections are the groups of the commands that change connections. Transcripts of these groups are played
// completely, of the others only the first cases.
var connections = []command.Group{command.GroupConnection, command.GroupTransactions, command.GroupPubSub,
	command.GroupScripting, command.GroupServer,
	command.GroupCluster}

// Only commands that clients keep away from shared connections may change the fields that CLIENT LIST shows
// of a connection.
func TestWhatChangesAConnectionIsStateful(t *testing.T) {
	tier.Sequential(t)
	table := services.Table(t)
	found := map[string]bool{}
	for _, path := range files(t) {
		cases, err := transcript.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Contains(connections, command.Group(filepath.Base(filepath.Dir(path))))
		for i := range cases {
			if !tier.Share(i) || i > 1 && !all {
				continue
			}
			e, err := transcript.NewEngine()
			if err != nil {
				t.Fatal(err)
			}
			w := &stateWatcher{Engine: e, t: t, table: table, found: found, ids: map[int]string{}}
			if err := w.look(); err != nil || len(w.last) != 1 {
				t.Fatalf("%v, %v", w.last, err)
			}
			for _, w.fresh = range w.last {
			}
			err = transcript.Play(&cases[i], w, transcript.Rules{Unseen: true, Loose: func(*transcript.Step) bool { return true }})
			if e.Close(); err != nil && !errors.As(err, new(*transcript.Mismatch)) {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{"select", "multi", "subscribe", "client|setname", "hello", "monitor"} {
		if !found[name] {
			t.Errorf("the transcripts do not show that %s changes a connection; found: %v", name, slices.Sorted(maps.Keys(found)))
		}
	}
}
