// Package migrate moves the data of running servers, or of files, to another server while clients write.
//
//	check ──▶ follow ──▶ verify ──▶ cut over ─ ─ ▶ and back
//
//	                       one master                      TO
//	link (link.go)         ═══ REPLICAOF ═════════════════▶ asks for the data itself, and follows
//	                       several masters, or no PSYNC
//	copy (copy.go)         ─── SCAN, DUMP ──▶ migrate ────▶ RESTORE, DEL
//	                       ─── keyspace events ──▶ dirty keys, which are copied again
//	files (files.go)       RDB and append-only files ─────▶ RESTORE, and the commands
//
// Promises:
//
//   - A server that holds data is not overwritten unless Options.Replace says so.
//   - A copied key is overwritten only by a later state of the same key: the keys of a source travel in one order,
//     and an event is read before the key that it names.
//   - After a loss of events (a cut connection, FLUSHALL, a changed cluster) all keys are copied again, and keys that
//     the sources no longer have are deleted.
//   - Cutover decides while the sources hold writes. If it fails, they accept writes again and TO is unchanged.
//
// Start reading at Follow and Cutover; a copy has one source (source.go) for each master.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/serverurl"
)

// Options say what moves where. The zero values of all but From, To and Out work.
type Options struct {
	From []string  // URLs of masters, one URL of a cluster, or one RDB or append-only file
	To   string    // URL of the target
	Out  io.Writer // receives lines for people

	Live     bool   // Out is a terminal: progress overwrites its line
	Password string // for servers whose URL has none; "": none
	CACert   string // file of the certificate authority for rediss URLs
	Replace  bool   // TO's data may be deleted first
	Scan     bool   // copy keys, even where TO could replicate
	Once     bool   // Follow returns when TO has caught up

	AcceptLoss bool          // Back and Verify accept that redis-server cannot hold everything
	Compare    bool          // Cutover compares the data while the sources hold writes
	Sample     int           // Verify compares about this many keys; 0: all
	Pause      time.Duration // longest time for which the sources hold writes; default 10 s
	Reverse    bool          // after the cutover, the source follows TO
}

// Migration is a set of sources and a target, to which it is connected.
type Migration struct {
	o      Options
	from   []*peer
	file   string // instead of from
	to     *peer
	out    *printer
	copies *copier // of a follow by copying that is under way
	plain  bool    // comparisons leave out what a plain target cannot hold
	// sent is the source's offset at the last look at the lag, and acked says that the source had an acknowledgement of the target then.
	sent  int64
	acked bool
	// foreign is the instant at which the target first had a link and the replication ID of a server other than the source; zero: it has not.
	foreign time.Time
	// pointed says that this Migration has made the target a replica, and before has what it changed there for that: directives and
	// their values.
	pointed bool
	before  [][2]string
	// restore undoes settings of the servers; Close calls it.
	restore []func(context.Context)
}

// Open connects to all servers and finds out what they are. The caller calls Close.
func Open(ctx context.Context, o Options) (*Migration, error) {
	if o.Pause <= 0 {
		o.Pause = 10 * time.Second
	}
	m := &Migration{o: o, out: &printer{w: o.Out, live: o.Live, last: time.Now()}}
	if err := m.open(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Migration) open(ctx context.Context) (err error) {
	if m.to, err = m.connect(ctx, "TO", m.o.To); err != nil {
		return err
	}
	m.plain = m.o.AcceptLoss && m.to.product != "ebb"
	if m.to.info["cluster_enabled"] == "1" && m.to.product != "ebb" {
		return fmt.Errorf("TO %s is a node of a cluster; it must be one server, because keys are restored over one connection", m.to)
	}
	if len(m.o.From) == 1 && !strings.Contains(m.o.From[0], "://") {
		m.file = m.o.From[0]
		if _, err := os.Stat(m.file); err != nil {
			return fmt.Errorf("FROM is neither a URL, such as redis://host:6379, nor a file: %w", err)
		}
		return nil
	}
	for _, url := range m.o.From {
		found, err := m.sources(ctx, url)
		if err != nil {
			return err
		}
		m.from = append(m.from, found...)
	}
	for _, f := range m.from {
		if f.info["run_id"] == m.to.info["run_id"] {
			return fmt.Errorf("FROM %s and TO %s are the same server", f, m.to)
		}
	}
	return nil
}

// connect opens one server.
func (m *Migration) connect(ctx context.Context, side, url string) (*peer, error) {
	s, err := serverurl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", side, err)
	}
	if s.DB != 0 {
		return nil, fmt.Errorf("%s: the URL names database %d; all databases move together, so write it without one", side, s.DB)
	}
	return m.reach(ctx, side, s)
}

func (m *Migration) reach(ctx context.Context, side string, s serverurl.Server) (*peer, error) {
	if !s.HavePassword && m.o.Password != "" {
		s.Password, s.HavePassword = m.o.Password, true
	}
	p := &peer{side: side, server: s, cacert: m.o.CACert}
	if err := p.learn(ctx); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// Close closes all connections and undoes temporary settings of the servers.
func (m *Migration) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, undo := range m.restore {
		undo(ctx)
	}
	m.restore = nil
	for _, p := range append(m.from, m.to) {
		if p != nil {
			p.close()
		}
	}
}

// byLink returns whether TO can replicate from the source, and if not, why.
func (m *Migration) byLink() (ok bool, why string) {
	f := m.from[0]
	switch {
	case m.o.Scan:
		return false, "--scan was given"
	case len(m.from) > 1:
		return false, fmt.Sprintf("a server follows one master, and there are %d", len(m.from))
	case f.info["cluster_enabled"] == "1":
		return false, "the source is a cluster"
	case m.to.product != "ebb" && f.product != "ebb":
		return false, "neither server is ebb"
	case f.server.Socket != "":
		return false, "the source's URL is a Unix socket, and replicas connect over TCP"
	case !f.psync:
		return false, "the source does not offer PSYNC"
	}
	return true, ""
}

// Follow copies the data to the target and keeps it equal until ctx ends, which is not an error. A file is copied once.
func (m *Migration) Follow(ctx context.Context) error {
	if m.file != "" {
		return m.load(ctx)
	}
	if err := m.follow(ctx); err != nil {
		return err
	}
	if m.o.Once {
		return nil
	}
	err := m.watch(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		m.reportStopped()
		return nil
	}
	if err != nil && m.copies == nil {
		return fmt.Errorf("%w; TO is not changed: if it still follows, it connects again by itself, and `follow` or `cutover` continues", err)
	}
	return err
}

// follow returns when the target has caught up.
func (m *Migration) follow(ctx context.Context) error {
	for _, f := range m.from {
		if f.info["role"] != "master" {
			return fmt.Errorf("FROM %s is a replica of %s:%s: name the master, because only a master can hold writes", f,
				f.info["master_host"], f.info["master_port"])
		}
	}
	if needed, has := m.databasesOf(ctx); has < needed {
		return fmt.Errorf("FROM has keys in database %d, and TO %s has %d databases: start TO with --databases %d", needed-1, m.to, has, needed)
	}
	if ok, why := m.byLink(); !ok {
		m.out.line("%d source(s), copied with SCAN, DUMP and RESTORE and followed by keyspace events: %s", len(m.from), why)
		return m.startCopy(ctx)
	}
	if err := m.warnOfSentinel(ctx); err != nil {
		return err
	}
	return m.startLink(ctx)
}

// watch prints the lag until ctx ends.
func (m *Migration) watch(ctx context.Context) error {
	if m.copies != nil {
		return m.copies.follow(ctx, nil)
	}
	return m.watchLink(ctx)
}

// reportStopped prints what an interrupted Follow leaves.
func (m *Migration) reportStopped() {
	if m.copies != nil {
		m.out.line("stopped: TO holds the keys as they were; changes after this moment are not followed. " +
			"`ebb migrate follow --replace` starts again")
		return
	}
	m.out.line("TO %s keeps following %s by itself. `ebb migrate cutover` completes the move; REPLICAOF NO ONE ends it", m.to, m.from[0])
	for _, s := range m.before { // without the values: they are passwords
		m.out.line("TO has FROM's %s: after the move, or its end, CONFIG SET it as it was", s[0])
	}
}

// Cutover follows until the target has caught up, holds the writes of the sources, waits until the target has all of
// them, and makes it a master. It prints how long writes were held.
func (m *Migration) Cutover(ctx context.Context) error {
	if m.file != "" {
		return fmt.Errorf("FROM %s is a file: there is nothing to cut over; `ebb migrate follow` loads it", m.file)
	}
	if err := m.holders(); err != nil {
		return err
	}
	if ok, _ := m.byLink(); ok {
		if err := m.refuseSentinel(ctx); err != nil {
			return err
		}
	}
	if err := m.follow(ctx); err != nil {
		return err
	}
	if m.copies != nil {
		return m.cutCopy(ctx)
	}
	return m.cutLink(ctx)
}

// cut holds the writes of the sources until finish has brought TO all of them, and compares the data if that was asked for. It
// returns when the pause began, and the time until TO had the last write. If it fails, it ends the pause,
// and its error ends in target, which says how TO is then.
func (m *Migration) cut(
	ctx context.Context, finish func(context.Context) error, target string,
) (began time.Time, equal time.Duration, err error) {
	runs, err := m.runs(ctx)
	if err != nil {
		return began, 0, err
	}
	began = time.Now()
	if err := m.hold(ctx); err != nil {
		return began, 0, err
	}
	within, cancel := context.WithDeadline(ctx, began.Add(m.o.Pause-m.o.Pause/10))
	defer cancel()
	err = finish(within)
	equal = time.Since(began)
	if err == nil && m.o.Compare {
		err = m.compareHeld(within)
	}
	if err == nil {
		err = m.sameRuns(within, runs)
	}
	if err == nil {
		err = within.Err()
	}
	if err != nil {
		return began, equal, m.abortCutover(ctx, m.from, err, target)
	}
	return began, equal, nil
}

// runs returns the run IDs of the sources.
func (m *Migration) runs(ctx context.Context) (ids []string, _ error) {
	for _, f := range m.from {
		info, err := f.section(ctx, "server")
		if err != nil {
			return nil, err
		}
		ids = append(ids, info["run_id"])
	}
	return ids, nil
}

// sameRuns returns an error if a source was restarted since runs: a restart ends the pause.
func (m *Migration) sameRuns(ctx context.Context, before []string) error {
	now, err := m.runs(ctx)
	if err != nil {
		return err
	}
	for i, f := range m.from {
		if now[i] != before[i] {
			return fmt.Errorf("FROM %s was restarted meanwhile, and accepts writes again", f)
		}
	}
	return nil
}

// Back is Cutover from ebb to another server. It counts what that cannot hold first, and stops if there is any, unless
// Options.AcceptLoss is set.
func (m *Migration) Back(ctx context.Context) error {
	if m.file != "" || len(m.from) != 1 || m.from[0].product != "ebb" || m.to.product == "ebb" {
		what := m.file
		if what == "" {
			what = m.from[0].String()
		}
		return fmt.Errorf("back moves data from one ebb to redis-server or Valkey; FROM is %s and TO is %s: exchange them?", what, m.to)
	}
	if err := m.refuseLoss(ctx); err != nil {
		return err
	}
	return m.Cutover(ctx)
}

// empty makes sure that the target may be written: it is empty, or Options.Replace is set.
func (m *Migration) empty(ctx context.Context) error {
	info, err := m.to.refresh(ctx)
	if err != nil {
		return err
	}
	if info["role"] != "master" {
		return fmt.Errorf("TO %s is a replica of %s:%s; send it REPLICAOF NO ONE first", m.to, info["master_host"], info["master_port"])
	}
	has, err := m.holds(ctx)
	if err == nil && has.String() != "" && !m.o.Replace {
		return fmt.Errorf("TO %s holds %s, and must be empty; --replace deletes them first", m.to, has)
	}
	return err
}

// contents is the data that a move replaces on the target.
type contents struct {
	keys  int64
	libs  int // of functions
	rules map[place]rule
}

// String names what is there; "" if nothing is.
func (c contents) String() string {
	var parts []string
	for _, n := range []struct {
		n    int64
		what string
	}{{c.keys, "keys"}, {int64(c.libs), "libraries of functions"}, {int64(len(c.rules)), "expiry rules"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return strings.Join(parts, ", ")
}

// holds returns what the target has, as far as the user may ask.
func (m *Migration) holds(ctx context.Context) (has contents, _ error) {
	has.keys = keysOf(m.to.info)
	code, _, err := functionsOf(ctx, m.to)
	if err != nil {
		return has, err
	}
	has.libs = len(code)
	if m.to.product == "ebb" {
		if has.rules, err = rulesOf(ctx, m.to); isRefusal(err) {
			err = nil
		}
	}
	return has, err
}

// clear deletes what the target has.
func (m *Migration) clear(ctx context.Context) error {
	has, err := m.holds(ctx)
	if err == nil && has.keys > 0 {
		_, err = m.to.do(ctx, "FLUSHALL")
	}
	if err == nil && has.libs > 0 {
		_, err = m.to.do(ctx, "FUNCTION", "FLUSH")
	}
	if err == nil && len(has.rules) > 0 {
		err = m.setRules(ctx, has.rules, nil)
	}
	return err
}

// keysOf returns the number of keys by the fields of INFO keyspace.
func keysOf(info map[string]string) (n int64) {
	for _, db := range databases(info) {
		n += db.keys
	}
	return n
}

// database is a line of INFO keyspace.
type database struct {
	n    int
	keys int64
}

func databases(info map[string]string) (all []database) {
	for name, line := range info {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "db"))
		if err != nil || !strings.HasPrefix(name, "db") {
			continue
		}
		var keys int64
		if _, err := fmt.Sscanf(line, "keys=%d", &keys); err == nil {
			all = append(all, database{n, keys})
		}
	}
	slices.SortFunc(all, func(a, b database) int { return a.n - b.n })
	return all
}

// number returns a number of INFO, 0 if there is none.
func number(info map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(info[name], 10, 64)
	return n
}

// finding appends a line of a check.
func finding(g doctor.Grade, area, why, how, format string, args ...any) doctor.Finding {
	return doctor.Finding{Grade: g, Area: area, What: fmt.Sprintf(format, args...), Why: why, How: how}
}
