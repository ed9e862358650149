package loadgen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// WaitersConfig describes clients that wait in one line: for a lock, or for a
// limiter. Some of their connections are cut before the line moves, and some while
// it does.
type WaitersConfig struct {
	Common
	Limiter bool // they wait with RL.WAIT; else with LOCK.ACQUIRE
	Clients int  // default 10,000
	Cut     int  // how many of these are cut; default a third
}

const (
	waitersKey = "line"
	// waitersLease is the lease of the lock, in ms. A client whose connection is cut while
	// it holds the lock blocks the line for this time.
	waitersLease = "1000"
)

// Waiters prints in which order those in line were served, compared with the order that
// LOCK.INFO or RL.INFO showed before, and the outcome of every grant.
func Waiters(ctx context.Context, cfg WaitersConfig) error {
	orDefault(&cfg.Clients, 10_000)
	orDefault(&cfg.Cut, cfg.Clients/3)
	w := waiters{cfg: cfg, line: statusLine{cfg.Progress}, byID: map[int64]*waiting{}}
	var err error
	if w.ctl, err = cfg.Target.client(ctx); err != nil {
		return err
	}
	defer w.close()
	defer w.ctl.closeWith(ctx)()
	if err := w.queue(ctx); err != nil {
		return err
	}
	return w.serve(ctx)
}

// waiters is one test under way.
type waiters struct {
	cfg  WaitersConfig
	ctl  *client
	line statusLine
	all  []*waiting
	byID map[int64]*waiting
	held resp.Value // what the control connection took first: a token
	from time.Time

	mu     sync.Mutex
	grants []grant
	failed error
}

// waiting is a client in line.
type waiting struct {
	c   *client
	id  int64
	n   int
	cut bool // by us
}

// grant is one grant that a client received.
type grant struct {
	w     *waiting
	token int64
	at    time.Time
}

func (w *waiters) close() {
	for _, x := range w.all {
		x.c.conn.Close()
	}
	w.ctl.conn.Close()
}

// ask returns the request of client n.
func (w *waiters) ask(n int, wait string) []string {
	if w.cfg.Limiter {
		return []string{"RL.WAIT", waitersKey, "200", "1000", wait, "BURST", "1"}
	}
	return []string{"LOCK.ACQUIRE", waitersKey, "owner-" + strconv.Itoa(n), waitersLease, "WAIT", wait}
}

// queue puts the clients into the line, one after the other. The control connection comes
// first: it holds the lock, or has used up the limiter in advance.
func (w *waiters) queue(ctx context.Context) error {
	err := w.ctl.flushable(w.cfg.Flush)
	if err != nil {
		return err
	}
	first := []string{"LOCK.ACQUIRE", waitersKey, "control", "600000"}
	if w.cfg.Limiter {
		first = []string{"RL.RESERVE", waitersKey, "1000", "1000", "BURST", "1", "COST", "1"}
	}
	if w.held, err = w.ctl.do(first...); err != nil {
		return err
	}
	defer w.line.clear()
	for n := range w.cfg.Clients {
		c, err := w.cfg.Target.client(ctx)
		if err != nil {
			return fmt.Errorf("connection %d: %w", n, err)
		}
		id, err := c.do("CLIENT", "ID")
		if err != nil {
			return err
		}
		x := &waiting{c: c, id: id.Int, n: n}
		w.all = append(w.all, x)
		w.byID[x.id] = x
		if n%100 == 0 {
			w.line.set("%s connections", thousands(float64(n)))
		}
	}
	if w.cfg.Limiter { // the line stands while it forms: a minute's worth is taken
		for range 60 {
			if _, err := w.ctl.do("RL.RESERVE", waitersKey, "1000", "1000", "BURST", "1000", "COST", "1000"); err != nil {
				return err
			}
		}
	}
	order := rand.Perm(len(w.all)) // not that of the connections
	for _, i := range order {
		x := w.all[i]
		x.c.add(w.ask(x.n, "0")...)
		if err := x.c.flush(); err != nil {
			return err
		}
	}
	return w.until(ctx, w.cfg.Clients)
}

// until waits until n clients are in line.
func (w *waiters) until(ctx context.Context, n int) error {
	for ctx.Err() == nil {
		ids, err := w.shown()
		if err != nil {
			return err
		}
		if len(ids) == n {
			return nil
		}
		w.line.set("%d of %d in line", len(ids), n)
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// shown returns the ids of the clients in the queue of waiters, in its order, as INFO shows them.
func (w *waiters) shown() (ids []int64, err error) {
	command, at := "LOCK.INFO", 2
	if w.cfg.Limiter {
		command, at = "RL.INFO", 0
	}
	v, err := w.ctl.do(command, waitersKey)
	if err != nil {
		return nil, err
	}
	line, ok := v.Get("line")
	if !ok {
		return nil, nil
	}
	for _, e := range line.Elems {
		if len(e.Elems) <= at {
			return nil, fmt.Errorf("%s: the line is %v", command, e)
		}
		ids = append(ids, e.Elems[at].Int)
	}
	return ids, nil
}

// serve cuts half of those to be cut, notes the line, lets it move, cuts the other
// half meanwhile, and compares.
func (w *waiters) serve(ctx context.Context) error {
	victims := rand.Perm(len(w.all))[:w.cfg.Cut]
	before, meanwhile := victims[:len(victims)/2], victims[len(victims)/2:]
	for _, i := range before {
		w.all[i].cut = true
		w.all[i].c.conn.Close()
	}
	if err := w.until(ctx, w.cfg.Clients-len(before)); err != nil {
		return err
	}
	ids, err := w.shown()
	if err != nil {
		return err
	}
	var readers sync.WaitGroup
	for _, x := range w.all {
		if !x.cut {
			readers.Go(func() { w.read(x) })
		}
	}
	w.from = time.Now()
	if err := w.letGo(); err != nil {
		return err
	}
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		for k, i := range meanwhile {
			w.mu.Lock()
			w.all[i].cut = true
			w.mu.Unlock()
			w.all[i].c.conn.Close()
			if k%20 == 19 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	<-cutting
	readers.Wait()
	if w.failed != nil {
		return w.failed
	}
	return w.account(ids, len(before), len(meanwhile))
}

// letGo lets the line begin to move.
func (w *waiters) letGo() (err error) {
	if w.cfg.Limiter {
		_, err = w.ctl.do("RL.RESET", waitersKey)
	} else {
		_, err = w.ctl.do("LOCK.RELEASE", waitersKey, "control", strconv.FormatInt(w.held.Int, 10))
	}
	return err
}

// read waits for a client's grant, records it, and releases a lock.
func (w *waiters) read(x *waiting) {
	v, err := x.c.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !x.cut && w.failed == nil {
			w.failed = fmt.Errorf("client %d: %w", x.n, err)
		}
		return
	}
	g := grant{w: x, token: v.Int, at: time.Now()}
	if w.cfg.Limiter {
		if len(v.Elems) != 5 || v.Elems[0].Int != 1 {
			w.failed = fmt.Errorf("client %d: %v", x.n, v)
			return
		}
	} else if _, err := x.c.do("LOCK.RELEASE", waitersKey, "owner-"+strconv.Itoa(x.n), strconv.FormatInt(v.Int, 10)); err != nil && !x.cut {
		w.failed = err
		return
	}
	w.grants = append(w.grants, g)
	if len(w.grants)%100 == 0 {
		w.line.set("%s served", thousands(float64(len(w.grants))))
	}
}

// account compares the grants with the line.
func (w *waiters) account(ids []int64, before, meanwhile int) error {
	w.line.clear()
	took := time.Since(w.from)
	place := map[int64]int{}
	for i, id := range ids {
		place[id] = i
	}
	if !w.cfg.Limiter { // readers may note two grants the wrong way round, tokens do not lie
		slices.SortFunc(w.grants, func(a, b grant) int { return int(a.token - b.token) })
	}
	wrong, last, served := 0, -1, map[int64]bool{}
	for _, g := range w.grants {
		p := place[g.w.id]
		if p < last {
			wrong++
		}
		last = max(last, p)
		served[g.w.id] = true
	}
	lost := 0
	for _, x := range w.all {
		if !x.cut && !served[x.id] {
			lost++
		}
	}
	left, err := w.shown()
	if err != nil {
		return err
	}
	fmt.Fprintf(w.cfg.Out, "%d clients, %d cut before the line moved, %d while it did; %d grants received in %s, out of the order shown %d, "+
		"waiting clients without a grant %d; left in line %d\n",
		w.cfg.Clients, before, meanwhile, len(w.grants), took.Round(time.Millisecond), wrong, lost, len(left))
	return w.counters()
}

// counters prints the server's own counts of its grants.
func (w *waiters) counters() error {
	v, err := w.ctl.do("INFO", "time")
	if err == nil && v.String() != "" {
		fmt.Fprintf(w.cfg.Out, "the server's own figures:\n%s", v.String())
	}
	return err
}
