package migrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// startLink makes the target a replica of the source, unless it is one, and returns when it has all data and follows.
// If the program ends meanwhile, the target goes on by itself, and the next startLink continues.
func (m *Migration) startLink(ctx context.Context) error {
	from, to := m.from[0], m.to
	info, err := to.section(ctx, "replication")
	if err != nil {
		return err
	}
	if m.linked(info) {
		m.out.line("TO %s already follows FROM %s", to, from)
		_, err := m.await(ctx, time.Now())
		return err
	}
	if err := m.empty(ctx); err != nil {
		return err
	}
	if err := m.pointTo(ctx, to, from); err != nil {
		return err
	}
	m.pointed = true
	m.out.line("TO %s follows FROM %s by replication: %d keys, %s", to, from, keysOf(from.info), size(number(from.info, "used_memory")))
	began := time.Now()
	keys, err := m.await(ctx, began)
	if err == nil {
		m.out.line("TO has the data: %d keys after %.1f s (%d keys/s), and follows", keys, time.Since(began).Seconds(), perSecond(keys, began))
	}
	return err
}

// linked reports whether the target is a replica of the source, by its INFO replication.
func (m *Migration) linked(info map[string]string) bool {
	f := m.from[0].server
	return info["role"] == "slave" && info["master_host"] == host(f) && info["master_port"] == port(f)
}

// pointTo makes one server a replica of another, with the user and password that this program uses there, and TLS if it uses that.
func (m *Migration) pointTo(ctx context.Context, replica, master *peer) error {
	want := map[string]string{"masteruser": "", "masterauth": "", "tls-replication": "no"}
	if s := master.server; s.HavePassword {
		want["masteruser"], want["masterauth"] = s.User, s.Password
	}
	if master.server.TLS {
		want["tls-replication"] = "yes"
	}
	for _, name := range linkSettings {
		has, known := replica.directive(ctx, name)
		if known && has == want[name] || !known && (want[name] == "" || want[name] == "no") {
			continue
		}
		if _, err := replica.do(ctx, "CONFIG", "SET", name, want[name]); err != nil {
			return fmt.Errorf("CONFIG SET %[3]s on %[1]s %[2]s, to the value of its master: %[4]w", replica.side, replica, name, err)
		}
		if replica == m.to && known {
			m.before = append(m.before, [2]string{name, has})
		}
	}
	_, err := replica.do(ctx, "REPLICAOF", host(master.server), port(master.server))
	return err
}

// linkSettings are the directives of a replica about its connection to the master.
var linkSettings = []string{"masteruser", "masterauth", "tls-replication"}

// await returns when the link is up and the target has what the source had at some moment after the call, and returns
// its number of keys. It prints the progress of the synchronisation and each new error that the target reports.
func (m *Migration) await(ctx context.Context, began time.Time) (keys int64, err error) {
	var trouble string
	progressed, before := time.Now(), int64(-1)
	for {
		info, err := m.to.refresh(ctx)
		if err != nil {
			return 0, err
		}
		if !m.linked(info) {
			return 0, fmt.Errorf("TO %s no longer follows FROM %s: its role is %s, its master %s",
				m.to, m.from[0], info["role"], net.JoinHostPort(info["master_host"], info["master_port"]))
		}
		if info["master_link_status"] == "up" && info["loading"] != "1" {
			if _, up, err := m.lag(ctx); err != nil || up {
				if err != nil {
					return 0, err
				}
				break
			}
		}
		got := number(info, "master_sync_read_bytes") + keysOf(info) + number(info, "loading_loaded_bytes")
		if got != before || info["master_sync_in_progress"] == "1" {
			before, progressed = got, time.Now()
		}
		if why := orElse(info["master_sync_last_error"], info["master_link_last_error"]); why != "" && why != trouble {
			trouble = why
			m.out.line("TO reports: %s", why)
		}
		if time.Since(progressed) > patience {
			tls := ""
			if m.from[0].server.TLS {
				tls = ", does TO know its certificate authority (tls-ca-cert-file of TO; --cacert is for this program)"
			}
			return 0, fmt.Errorf("TO %s has no link to FROM %s after %v: %s. TO still tries. "+
				"Can TO reach %s%s, and may the user replicate (+psync +replconf +ping)? --scan copies without replication",
				m.to, m.from[0], patience, orElse(trouble, "it reports no reason"), address(m.from[0].server), tls)
		}
		m.tellSync(info, began)
		if !sleep(ctx, 50*time.Millisecond) {
			return 0, ctx.Err()
		}
	}
	if n := number(m.to.info, "replica_refused_commands"); n > 0 {
		m.out.line("TO refused %d commands of its master since it started, the last: %s", n, m.to.info["replica_refused_last"])
	}
	return keysOf(m.to.info), nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (m *Migration) tellSync(info map[string]string, began time.Time) {
	total, got := number(info, "master_sync_total_bytes"), number(info, "master_sync_read_bytes")
	keys, all := keysOf(info), keysOf(m.from[0].info)
	switch {
	case total > 0:
		m.out.progress(time.Second, "snapshot %3d %%  %s of %s", percent(got, total), size(got), size(total))
	case info["loading"] == "1" || info["async_loading"] == "1":
		m.out.progress(time.Second, "load %3d %%  %d of some %d keys, %d keys/s", percent(keys, all), keys, all, perSecond(keys, began))
	case got > 0:
		m.out.progress(time.Second, "snapshot  %s received, %s/s", size(got), size(perSecond(got, began)))
	default:
		m.out.progress(time.Second, "waiting for the source's snapshot, %.0f s", time.Since(began).Seconds())
	}
}

// foreignAfter is the time for which the target may have a link and a replication ID other than the source's. Then it follows another
// server: FROM's host and port may lead elsewhere from its machine.
var foreignAfter = 5 * time.Second

// lag returns by how many bytes of the stream the target is behind; up is false while it has no link to the source.
func (m *Migration) lag(ctx context.Context) (bytes int64, up bool, err error) {
	from, err := m.from[0].section(ctx, "replication")
	if err != nil {
		return 0, false, err
	}
	to, err := m.to.section(ctx, "replication")
	if err != nil {
		return 0, false, err
	}
	if from["role"] != "master" {
		return 0, false, fmt.Errorf("FROM %s is a replica of %s now: name the master that it follows",
			m.from[0], net.JoinHostPort(from["master_host"], from["master_port"]))
	}
	if !m.linked(to) {
		return 0, false, fmt.Errorf("TO %s no longer follows FROM %s: its role is %s", m.to, m.from[0], to["role"])
	}
	up = to["master_link_status"] == "up"
	if !up || from["master_replid"] == to["master_replid"] {
		m.foreign = time.Time{}
	} else if up = false; m.foreign.IsZero() { // after a restart of FROM, TO notices that its link is down a moment later
		m.foreign = time.Now()
	} else if time.Since(m.foreign) > foreignAfter {
		return 0, false, fmt.Errorf("TO %s follows a server other than FROM %s: the replication ID of TO is %s, that of FROM %s. "+
			"Does %s lead to FROM from TO's machine, too? REPLICAOF NO ONE on TO ends this",
			m.to, m.from[0], to["master_replid"], from["master_replid"], address(m.from[0].server))
	}
	m.sent, m.acked = number(from, "master_repl_offset"), hasAck(from, m.to.info["tcp_port"])
	return max(0, m.sent-number(to, "slave_repl_offset")), up, nil
}

// hasAck reports whether a master, by its INFO replication, has an acknowledgement of a replica with this port. A master without a file
// sends its stream only after the first one. The master may know the replica by another port, or several by this one: what it says of
// others does not matter. At the beginning of the stream an acknowledgement is 0, too.
func hasAck(master map[string]string, port string) bool {
	if number(master, "master_repl_offset") == 0 {
		return true
	}
	silent := false
	for n := range int(number(master, "connected_slaves")) {
		line := "," + master["slave"+strconv.Itoa(n)] + ","
		if !strings.Contains(line, ",port="+port+",") {
			continue
		}
		if !strings.Contains(line, ",offset=0,") {
			return true
		}
		silent = true
	}
	return !silent
}

// watchLink prints the lag until ctx ends.
func (m *Migration) watchLink(ctx context.Context) error {
	for {
		lag, up, err := m.lag(ctx)
		if err != nil {
			return err
		}
		state := "up"
		if !up {
			state = "down: TO connects again by itself"
		}
		m.out.progress(10*time.Second, "follow  lag %s, link %s", size(lag), state)
		if !sleep(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// nearby is the lag in bytes at which a cutover begins: a server applies as much in some ten milliseconds.
const nearby = 1 << 20

// draw waits until the target is near the source, and the stream flows: the target has what the source had at the first look. A master
// without a file sends the stream only after the new replica's next acknowledgement, which may come a second after the load.
func (m *Migration) draw(ctx context.Context) error {
	goal := int64(-1)
	for {
		lag, up, err := m.lag(ctx)
		switch {
		case err != nil:
			return err
		case !up:
			goal = -1
		case goal < 0:
			goal = m.sent
		}
		if up && m.acked && lag < nearby && m.sent-lag >= goal {
			return nil
		}
		m.out.progress(time.Second, "wait  lag %s; writes are held below %s, when TO receives", size(lag), size(nearby))
		if !sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// cutLink promotes the target at the source's last write.
func (m *Migration) cutLink(ctx context.Context) error {
	if err := m.draw(ctx); err != nil {
		return err
	}
	if err := m.fits(ctx); err != nil {
		return err
	}
	if err := m.refuseSentinel(ctx); err != nil { // it may have begun to watch meanwhile
		return err
	}
	began, equal, err := m.cut(ctx, m.reachEnd, "TO still follows")
	if err != nil {
		return err
	}
	// Not after the pause: FROM may then have writes that TO does not.
	promote, end := context.WithDeadline(ctx, began.Add(m.o.Pause))
	defer end()
	if _, err := m.to.do(promote, "REPLICAOF", "NO", "ONE"); err != nil {
		return fmt.Errorf("TO %s has everything, but did not reply to REPLICAOF NO ONE: %w. Ask it for its ROLE before FROM's pause of %v ends: "+
			"if it is a master, move the clients to it; if not, FROM continues and `cutover` can be repeated", m.to, err, m.o.Pause)
	}
	pause := time.Since(began)
	m.out.line("TO %s is a master. Writes were held for %s (%s until TO had the last one)", m.to, millis(pause), millis(equal))
	m.forget(ctx)
	return m.after(ctx)
}

// fits returns an error if the target uses more than its limit. A replica does not evict; as a master it would begin to, or refuse writes.
func (m *Migration) fits(ctx context.Context) error {
	info, err := m.to.refresh(ctx)
	if err != nil {
		return err
	}
	if used, limit := number(info, "used_memory"), number(info, "maxmemory"); limit > 0 && used > limit {
		return fmt.Errorf("no cutover: TO %s uses %s, and its maxmemory is %s: as a master it would refuse writes or evict "+
			"keys (maxmemory-policy %s). CONFIG SET maxmemory on TO, and repeat", m.to, size(used), size(limit), info["maxmemory_policy"])
	}
	return nil
}

// forget gives the target the settings of its link that it had before it followed the source. If an earlier `ebb migrate follow` has
// changed them, it removes the source's password, and says so.
func (m *Migration) forget(ctx context.Context) {
	before := m.before
	if !m.pointed {
		if m.from[0].server.HavePassword {
			before = [][2]string{{"masteruser", ""}, {"masterauth", ""}}
			m.out.line("TO's masteruser and masterauth were those of FROM, and are empty now: if TO belongs to a group, set the group's")
		}
		if m.from[0].server.TLS {
			m.out.line("TO's tls-replication is yes, for FROM: if TO's group replicates without TLS, set it to no")
		}
	}
	for _, s := range before {
		if _, err := m.to.do(ctx, "CONFIG", "SET", s[0], s[1]); err != nil {
			m.out.line("TO still has FROM's %s: %v", s[0], err)
		}
	}
	m.before = nil
}

// hold makes all sources hold writes, for Options.Pause at most.
func (m *Migration) hold(ctx context.Context) error {
	for i, f := range m.from {
		_, err := f.do(ctx, "CLIENT", "PAUSE", fmt.Sprint(m.o.Pause.Milliseconds()), "WRITE")
		switch {
		case err == nil:
			continue
		case !isRefusal(err): // it may have begun to hold them
			return m.abortCutover(ctx, m.from[:i+1], fmt.Errorf("FROM %s does not hold writes: %w", f, err), "TO is unchanged")
		case i == 0:
			return fmt.Errorf("no cutover: FROM %s has refused to hold writes: %w; no write was held, and TO is unchanged", f, err)
		}
		return m.abortCutover(ctx, m.from[:i], fmt.Errorf("FROM %s has refused to hold writes: %w", f, err), "TO is unchanged")
	}
	return nil
}

// holders returns an error if a source cannot hold writes alone: CLIENT PAUSE has WRITE since Redis 6.2.
func (m *Migration) holders() error {
	for _, f := range m.from {
		var major, minor int
		if n, _ := fmt.Sscanf(f.info["redis_version"], "%d.%d", &major, &minor); n == 2 && (major < 6 || major == 6 && minor < 2) {
			return fmt.Errorf("FROM %s cannot hold writes for a cutover: CLIENT PAUSE ... WRITE needs Redis 6.2", f)
		}
	}
	return nil
}

// abortCutover ends a cutover that failed: the sources that held writes accept them again. target says in the error how the target is.
func (m *Migration) abortCutover(ctx context.Context, held []*peer, failed error, target string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if errors.Is(failed, context.DeadlineExceeded) {
		failed = fmt.Errorf("TO did not catch up within 90 %% of --pause %v", m.o.Pause)
	}
	for _, f := range held {
		if _, err := f.do(ctx, "CLIENT", "UNPAUSE"); err != nil {
			return fmt.Errorf("no cutover: %w; FROM %s holds writes until the pause of %v ends: %v", failed, f, m.o.Pause, err)
		}
	}
	return fmt.Errorf("no cutover: %w; FROM accepts writes again, and %s", failed, target)
}

// reachEnd waits until the target has the source's stream up to its end. The source holds writes; only PINGs to
// replicas come after the offset that is read here.
func (m *Migration) reachEnd(ctx context.Context) error {
	for {
		lag, up, err := m.lag(ctx)
		if err != nil {
			return err
		}
		if up && lag == 0 {
			return nil
		}
		if !sleep(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
}

// after prints what the sources do now, or makes the source follow the target.
func (m *Migration) after(ctx context.Context) error {
	if !m.o.Reverse || m.copies != nil {
		m.out.line("FROM holds writes until its pause of %v ends, and accepts them again then: move the clients to TO now, and stop FROM",
			m.o.Pause)
		if m.o.Reverse {
			m.out.line("--reverse was left out: the data was copied, so the source has no common history with TO")
		}
		return nil
	}
	f := m.from[0]
	if err := m.pointTo(ctx, f, m.to); err != nil {
		return fmt.Errorf("TO is a master, but FROM %s does not follow it: %w", f, err)
	}
	if _, err := f.do(ctx, "CLIENT", "UNPAUSE"); err != nil {
		return fmt.Errorf("TO is a master and FROM %s follows it, but its pause goes on: %w", f, err)
	}
	m.out.line("FROM %s follows TO: it refuses writes (READONLY) and can take over again", f)
	return nil
}
