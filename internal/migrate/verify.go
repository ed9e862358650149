package migrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// errDiffer is the end of a comparison that found differences, which are printed.
var errDiffer = errors.New("the data differs")

const (
	// rounds is the number of times that a key which differs is compared again: a writer may have changed it between two reads.
	rounds = 8
	// sureRounds is the number of times that a key is compared before it counts as different: a writer may delete it and write the
	// same value again between two reads of the source.
	sureRounds = 4
	// shownKeys is the number of keys that a report names.
	shownKeys = 10
	// compared is the number of keys that are read at a time.
	compared = 256
)

// Verify compares values and deadlines of all keys, or of a sample. It may run while clients write: a key that differs
// is read again, and one that changes on the source meanwhile is counted apart. It returns an error if data differs.
func (m *Migration) Verify(ctx context.Context) error {
	if m.file != "" {
		return m.verifyFile(ctx)
	}
	c, err := m.comparison(ctx)
	defer c.close()
	if err != nil {
		return err
	}
	return c.everything(ctx)
}

// compareHeld compares while the sources hold writes: the digests of both servers, or all values. If the deadline of ctx ends
// the comparison, the error says how far it came.
func (m *Migration) compareHeld(ctx context.Context) error {
	c, err := m.comparison(ctx)
	defer c.close()
	if err == nil {
		err = c.held(ctx)
	}
	if err != nil && !errors.Is(err, errDiffer) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return c.overtime()
	}
	return err
}

func (c *comparison) held(ctx context.Context) error {
	m := c.m
	if len(m.from) == 1 && !m.plain {
		c.stage = "DEBUG DIGEST of both servers has not ended"
		if a, b, ok := m.digests(ctx); ok && a == b {
			m.out.line("equal: DEBUG DIGEST %s of both, %d keys, in %.1f s", a, keysOf(m.to.info), time.Since(c.began).Seconds())
			c.stage = "DEBUG DIGEST is equal, but the groups of streams and the functions were not all compared"
			return c.rest(ctx)
		} else if ok {
			m.out.line("DEBUG DIGEST differs (%s, %s): comparing the values", a, b)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.stage = ""
	}
	return c.everything(ctx)
}

// overtime is the error of a comparison that the end of the pause has cut off.
func (c *comparison) overtime() error {
	spent := time.Since(c.began).Seconds()
	came := c.stage
	if came == "" {
		came = fmt.Sprintf("%d of %d keys were compared", c.seen, c.all)
	}
	came += fmt.Sprintf(" after %.1f s", spent)
	if c.stage == "" && c.seen > 0 {
		came += fmt.Sprintf("; at this rate all take %.0f s", max(spent, spent*float64(c.all)/float64(c.seen)))
	}
	advice := "give a longer --pause"
	if c.m.copies == nil { // a copy is followed only by the process that cuts over
		advice = "run `ebb migrate verify` before, which needs no pause, and cut over without --compare, or " + advice
	}
	return fmt.Errorf("the comparison takes longer than 90 %% of --pause %v (%s): %s", c.m.o.Pause, came, advice)
}

// rest compares what a digest leaves out: the groups of streams, functions and rules.
func (c *comparison) rest(ctx context.Context) error {
	f := c.m.from[0]
	for _, d := range databases(f.info) {
		err := scan(ctx, c.on[f], d.n, compared, func(keys []string) (bool, error) {
			c.seen += int64(len(keys))
			return true, c.keys(ctx, f, d.n, keys)
		}, "TYPE", "stream")
		if err != nil {
			return err
		}
	}
	if err := c.decide(ctx); err != nil {
		return err
	}
	if err := c.besides(ctx); err != nil || c.seen == 0 && c.libs == 0 && c.rulesDiffer == 0 {
		return err
	}
	return c.report()
}

// digests returns DEBUG DIGEST of both servers; ok is false if one does not have it.
func (m *Migration) digests(ctx context.Context) (from, to string, ok bool) {
	var got [2]string
	errs := make(chan error, 2)
	for i, p := range []*peer{m.from[0], m.to} {
		go func() {
			c, err := p.dial(ctx)
			if err == nil {
				defer c.nc.Close()
				var v resp.Value
				c.add("DEBUG", "DIGEST")
				if err = c.flush(ctx); err == nil {
					v, err = c.replyWithin(ctx, time.Hour)
				}
				if err == nil {
					err = v.Err()
				}
				got[i] = v.Str
			}
			errs <- err
		}()
	}
	err := errors.Join(<-errs, <-errs)
	return got[0], got[1], err == nil
}

// comparison counts what a comparison has found.
type comparison struct {
	m        *Migration
	began    time.Time
	all      int64
	seen     int64
	shown    []string // the first ones, and why
	differs  int64
	changing int64
	libs     int64 // libraries of functions that differ
	// rulesDiffer is the number of expiry rules that do.
	rulesDiffer int
	open        []suspects
	// suspected is the number of keys in open.
	suspected int
	linked    bool // the target replicates from the source
	// stage says what the comparison does; "": it reads the keys of the sources.
	stage string
	on    map[*peer]*client
}

// comparison returns a new one, with connections that the caller closes even after an error.
func (m *Migration) comparison(ctx context.Context) (c *comparison, err error) {
	c = &comparison{m: m, began: time.Now(), on: map[*peer]*client{}, stage: "the servers have not replied"}
	for _, p := range append([]*peer{m.to}, m.from...) {
		if c.on[p], err = p.dial(ctx); err != nil {
			return c, err
		}
		if _, err := p.refresh(ctx); err != nil {
			return c, err
		}
	}
	for _, f := range m.from {
		c.all += keysOf(f.info)
	}
	c.linked, c.stage = m.linked(m.to.info), ""
	return c, nil
}

// everything compares the keys of all databases, or a sample of them, and functions.
func (c *comparison) everything(ctx context.Context) error {
	sample := int64(c.m.o.Sample)
	if sample > 0 && sample < c.all {
		c.all = sample
	}
	for _, f := range c.m.from {
		for _, d := range databases(f.info) {
			share := int64(-1)
			if sample > 0 {
				share = max(1, sample*d.keys/max(1, c.totalKeys()))
			}
			if err := c.database(ctx, f, d.n, share); err != nil {
				return err
			}
		}
	}
	if err := c.decide(ctx); err != nil {
		return err
	}
	if sample == 0 {
		c.stage = fmt.Sprintf("%d keys of FROM were compared, and it still looks for keys that only TO has", c.seen)
		if err := c.extra(ctx); err != nil {
			return err
		}
	}
	if err := c.besides(ctx); err != nil {
		return err
	}
	return c.report()
}

// besides compares what is not a key: functions and expiry rules.
func (c *comparison) besides(ctx context.Context) error {
	if err := c.functions(ctx); err != nil {
		return err
	}
	return c.rules(ctx)
}

func (c *comparison) totalKeys() (n int64) {
	for _, f := range c.m.from {
		n += keysOf(f.info)
	}
	return n
}

func (c *comparison) close() {
	for _, cl := range c.on {
		if cl != nil {
			cl.nc.Close()
		}
	}
}

// database compares a source's keys of one database, but no more than limit if that is not negative.
func (c *comparison) database(ctx context.Context, f *peer, db int, limit int64) error {
	return scan(ctx, c.on[f], db, compared, func(keys []string) (bool, error) {
		if limit >= 0 && int64(len(keys)) > limit {
			keys = keys[:limit]
		}
		if err := c.keys(ctx, f, db, keys); err != nil {
			return false, err
		}
		c.seen += int64(len(keys))
		limit -= int64(len(keys))
		c.m.out.progress(time.Second, "verify %3d %%  %d of %d keys, %d keys/s, %d to be looked at again",
			percent(c.seen, c.all), c.seen, c.all, perSecond(c.seen, c.began), c.suspected)
		return limit != 0, nil
	})
}

// state is a server's value of a key.
type state struct {
	payload  string
	exists   bool
	moved    bool  // another node of the cluster has the key's slot
	deadline int64 // in ms since 1970, 0: none
}

// own reports whether the value is of a type that only ebb has.
func (s state) own() bool {
	v, err := readValue(s.payload, true)
	return err == nil && strings.HasPrefix(v.kind, "ebb-")
}

// suspects are keys of one source and database that differed when they were read.
type suspects struct {
	f    *peer
	db   int
	keys []string
}

// keys compares a batch, and notes the keys that differ.
func (c *comparison) keys(ctx context.Context, f *peer, db int, keys []string) error {
	var a []state
	source := make(chan error, 1)
	go func() {
		var err error
		a, err = read(ctx, f, c.on[f], db, keys)
		source <- err
	}()
	b, err := read(ctx, c.m.to, c.on[c.m.to], db, keys)
	if err = errors.Join(<-source, err); err != nil {
		return err
	}
	for i, key := range keys {
		if c.differ(f, a[i], b[i]) != "" {
			c.suspect(f, db, key)
		}
	}
	return nil
}

func (c *comparison) suspect(f *peer, db int, key string) {
	last := len(c.open) - 1
	if last < 0 || c.open[last].f != f || c.open[last].db != db || len(c.open[last].keys) == compared {
		c.open = append(c.open, suspects{f: f, db: db})
		last++
	}
	c.open[last].keys = append(c.open[last].keys, key)
	c.suspected++
}

// decide reads the suspects again, until each is equal, or differs although the source's value has stayed the same and
// the target had time to get it, or has changed on the source in each round.
func (c *comparison) decide(ctx context.Context) error {
	for round := 1; len(c.open) > 0; round++ {
		again := c.open
		c.open, c.suspected = nil, 0
		for _, s := range again {
			if err := c.decideOn(ctx, s, round); err != nil {
				return err
			}
			c.m.out.progress(time.Second, "verify again  round %d: %d keys differ, %d still change or wait", round, c.differs, c.suspected)
		}
	}
	return nil
}

func (c *comparison) decideOn(ctx context.Context, s suspects, round int) error {
	before, err := read(ctx, s.f, c.on[s.f], s.db, s.keys)
	if err != nil {
		return err
	}
	if err := c.settle(ctx, round); err != nil {
		return err
	}
	to, err := read(ctx, c.m.to, c.on[c.m.to], s.db, s.keys)
	if err != nil {
		return err
	}
	after, err := read(ctx, s.f, c.on[s.f], s.db, s.keys)
	if err != nil {
		return err
	}
	for i, key := range s.keys {
		why := c.differ(s.f, after[i], to[i])
		if why == "" || c.differ(s.f, before[i], to[i]) == "" {
			continue
		}
		switch changes := c.differ(s.f, before[i], after[i]) != ""; {
		case changes && round == rounds:
			c.changing++
		case changes, round < sureRounds:
			c.suspect(s.f, s.db, key)
		default:
			if c.differs++; len(c.shown) < shownKeys {
				c.shown = append(c.shown, fmt.Sprintf("database %d, key %s: %s", s.db, wire.AppendQuoted(nil, key), why))
			}
		}
	}
	return nil
}

// settle waits until the target has what the source had at the call: to the source's offset if it replicates, and
// otherwise for a time that grows with the rounds.
func (c *comparison) settle(ctx context.Context, round int) error {
	if !c.linked {
		if !sleep(ctx, time.Duration(round)*50*time.Millisecond) {
			return ctx.Err()
		}
		return nil
	}
	from, err := c.m.from[0].section(ctx, "replication")
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		to, err := c.m.to.section(ctx, "replication")
		if err != nil {
			return err
		}
		lag := number(from, "master_repl_offset") - number(to, "slave_repl_offset")
		if lag <= 0 || !c.m.linked(to) {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("TO %s is %s behind FROM for %v (link %s): compare when it has caught up", c.m.to, size(lag),
				patience, to["master_link_status"])
		}
		if !sleep(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// differ says how two states differ; "" if they do not.
func (c *comparison) differ(f *peer, from, to state) string {
	switch {
	case !from.exists && !to.exists:
		return ""
	case !to.exists && c.m.plain && from.own():
		return "" // it cannot have it
	case !to.exists:
		return "TO does not have it"
	case !from.exists:
		return "FROM does not have it"
	}
	// Without PEXPIRETIME, deadlines are computed from the remaining time and this machine's clock.
	tolerance := int64(0)
	if !f.exact || !c.m.to.exact {
		tolerance = 1000
	}
	if from.deadline != 0 != (to.deadline != 0) || max(from.deadline-to.deadline, to.deadline-from.deadline) > tolerance {
		return fmt.Sprintf("the deadline is %d on FROM and %d on TO (ms since 1970; 0: none)", from.deadline, to.deadline)
	}
	if from.payload == to.payload {
		return ""
	}
	a, err := readValue(from.payload, c.m.plain)
	if err != nil {
		return "FROM's value cannot be read: " + err.Error()
	}
	b, err := readValue(to.payload, c.m.plain)
	switch {
	case err != nil:
		return "TO's value cannot be read: " + err.Error()
	case a.kind != b.kind:
		return fmt.Sprintf("FROM has a %s, TO a %s", a.kind, b.kind)
	case !a.same(b):
		return fmt.Sprintf("the %s differs: %d items on FROM, %d on TO", a.kind, a.items, b.items)
	}
	return ""
}

// read returns the states of keys on one server.
func read(ctx context.Context, p *peer, c *client, db int, keys []string) ([]state, error) {
	if err := c.use(ctx, db); err != nil {
		return nil, err
	}
	for _, key := range keys {
		c.add("DUMP", key)
		c.add(p.deadlineCommand(), key)
	}
	sent := time.Now()
	if err := c.flush(ctx); err != nil {
		return nil, fmt.Errorf("%s %s: %w", p.side, p, err)
	}
	states := make([]state, len(keys))
	for i, key := range keys {
		v, err := c.reply(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s %s: DUMP: %w", p.side, p, err)
		}
		at, err := c.reply(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %s: %w", p.side, p, p.deadlineCommand(), err)
		}
		switch {
		case v.Kind == resp.KindBulk:
			states[i].payload, states[i].exists = v.Str, true
		case moved(v):
			states[i].moved = true
		case v.Err() != nil:
			return nil, fmt.Errorf("%s %s: DUMP %s: %w", p.side, p, wire.AppendQuoted(nil, key), v.Err())
		}
		if err := states[i].setDeadline(at, p.exact, sent); err != nil {
			return nil, fmt.Errorf("%s %s: %s %s: %w", p.side, p, p.deadlineCommand(), wire.AppendQuoted(nil, key), err)
		}
	}
	return states, nil
}

// noKey is the reply to PEXPIRETIME and PTTL of a key that does not exist.
const noKey = -2

// setDeadline takes the reply to deadlineCommand. An error reply does not mean a key without a deadline: that would live for ever on TO.
func (s *state) setDeadline(at resp.Value, exact bool, sent time.Time) error {
	switch {
	case moved(at):
		*s = state{moved: true}
	case at.Err() != nil:
		return at.Err()
	case at.Int == noKey: // it has expired since DUMP; while FROM holds writes no event tells
		*s = state{}
	case at.Int >= 0 && !exact: // PTTL is 0 in the last millisecond
		s.deadline = sent.UnixMilli() + at.Int
	case at.Int > 0:
		s.deadline = at.Int
	}
	return nil
}

// deadlineCommand returns PEXPIRETIME, or PTTL before Redis 7.0.
func (p *peer) deadlineCommand() string {
	if p.exact {
		return "PEXPIRETIME"
	}
	return "PTTL"
}

// moved reports whether a reply says that another node of the cluster has the key.
func moved(v resp.Value) bool {
	return v.Kind == resp.KindError && (strings.HasPrefix(v.Str, "MOVED ") || strings.HasPrefix(v.Str, "ASK "))
}

// scan calls each with the keys of a database, a batch at a time, until it returns false or an error.
// options are those of SCAN.
func scan(ctx context.Context, c *client, db, batch int, each func(keys []string) (more bool, err error), options ...string) error {
	for cursor := "0"; ; {
		if err := c.use(ctx, db); err != nil {
			return err
		}
		v, err := c.do(ctx, append([]string{"SCAN", cursor, "COUNT", strconv.Itoa(batch)}, options...)...)
		if err == nil && (len(v.Elems) != 2 || v.Elems[1].Kind != resp.KindArray) {
			err = fmt.Errorf("got %s, want a cursor and keys", v)
		}
		if err != nil {
			return fmt.Errorf("%s: SCAN: %w", c.name, err)
		}
		keys := make([]string, len(v.Elems[1].Elems))
		for i, k := range v.Elems[1].Elems {
			keys[i] = k.Str
		}
		if len(keys) > 0 {
			if more, err := each(keys); err != nil || !more {
				return err
			}
		}
		if cursor = v.Elems[0].String(); cursor == "0" {
			return nil
		}
	}
}

// extra finds keys that only the target has. The numbers of keys do not tell whether there are any: those of redis-server
// count keys whose deadlines have passed.
func (c *comparison) extra(ctx context.Context) error {
	info, err := c.m.to.refresh(ctx)
	if err != nil {
		return err
	}
	for _, d := range databases(info) {
		err := scan(ctx, c.on[c.m.to], d.n, compared, func(keys []string) (bool, error) {
			lone, err := c.lacking(ctx, d.n, keys)
			if err != nil || len(lone) == 0 {
				return true, err
			}
			return true, c.keys(ctx, c.m.from[0], d.n, lone)
		})
		if err != nil {
			return err
		}
	}
	return c.decide(ctx)
}

// lacking returns the keys that no source has.
func (c *comparison) lacking(ctx context.Context, db int, keys []string) ([]string, error) {
	for _, f := range c.m.from {
		cl := c.on[f]
		if db != 0 && f.info["cluster_enabled"] == "1" {
			continue
		}
		if err := cl.use(ctx, db); err != nil {
			return nil, err
		}
		left, err := absent(ctx, cl, keys)
		if err != nil {
			return nil, fmt.Errorf("FROM %s: EXISTS: %w", f, err)
		}
		keys = left
	}
	return keys, nil
}

// absent returns those of the keys that a server does not have.
func absent(ctx context.Context, c *client, keys []string) (left []string, _ error) {
	for _, key := range keys {
		c.add("EXISTS", key)
	}
	if err := c.flush(ctx); err != nil {
		return nil, err
	}
	for _, key := range keys {
		v, err := c.reply(ctx)
		if err != nil {
			return nil, err
		}
		if v.Err() != nil && !moved(v) {
			return nil, v.Err()
		}
		if v.Int == 0 {
			left = append(left, key)
		}
	}
	return left, nil
}

func (c *comparison) report() error {
	if c.changing > 0 {
		c.m.out.line("%d keys changed on the source at each of %d looks: `cutover --compare` compares while writes are held", c.changing, rounds)
	}
	spent := time.Since(c.began).Seconds()
	if c.differs+c.libs+int64(c.rulesDiffer) == 0 {
		c.m.out.line("equal: values and deadlines of %d keys, in %.1f s", c.seen-c.changing, spent)
		return nil
	}
	for _, line := range c.shown {
		c.m.out.line("differs: %s", line)
	}
	what := fmt.Sprintf("%d of %d keys", c.differs, c.seen)
	if c.libs > 0 {
		what += fmt.Sprintf(", and %d libraries of functions", c.libs)
	}
	if c.rulesDiffer > 0 {
		what += fmt.Sprintf(", and %d expiry rules", c.rulesDiffer)
	}
	return fmt.Errorf("%w: %s", errDiffer, what)
}
