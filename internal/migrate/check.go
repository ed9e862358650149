package migrate

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/doctor"
)

// Check examines whether the sources' data and commands fit the target. It changes nothing.
func (m *Migration) Check(ctx context.Context) ([]doctor.Finding, error) {
	if m.file != "" {
		return m.checkFile(ctx)
	}
	var found []doctor.Finding
	for _, f := range m.from {
		found = append(found, finding(doctor.OK, "from", "", "", "%s, %d keys, %s", f, keysOf(f.info), size(number(f.info, "used_memory"))))
	}
	target, err := m.checkTarget(ctx)
	if err != nil {
		return nil, err
	}
	found = append(found, target, m.checkPath())
	for _, check := range []func(context.Context) ([]doctor.Finding, error){
		m.checkHold, m.checkSentinel, m.checkModules, m.checkCommands, m.checkMemory, m.checkDatabases, m.checkUsers, m.checkLoss,
	} {
		more, err := check(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (m *Migration) checkTarget(ctx context.Context) (doctor.Finding, error) {
	has, err := m.holds(ctx)
	switch {
	case err != nil:
		return doctor.Finding{}, err
	case m.file == "" && m.to.info["role"] != "master" && m.linked(m.to.info):
		return finding(doctor.OK, "to", "", "", "%s follows the source already", m.to), nil
	case m.to.info["role"] != "master":
		return finding(doctor.Act, "to", "a replica refuses writes", "REPLICAOF NO ONE on TO", "%s is a replica of %s",
			m.to, m.to.info["master_host"]), nil
	case has.String() != "":
		return finding(doctor.Look, "to", "a move replaces what TO holds", "--replace allows it", "%s holds %s", m.to, has), nil
	}
	return finding(doctor.OK, "to", "", "", "%s, empty", m.to), nil
}

func (m *Migration) checkPath() doctor.Finding {
	for _, p := range m.from {
		if p.info["role"] != "master" {
			return finding(doctor.Act, "path", "only a master can hold writes", "name the master", "FROM %s is a replica of %s", p,
				net.JoinHostPort(p.info["master_host"], p.info["master_port"]))
		}
	}
	if ok, why := m.byLink(); !ok {
		return finding(doctor.OK, "path", "", "", "SCAN, DUMP, RESTORE and keyspace events, because %s", why)
	}
	return finding(doctor.OK, "path", "", "", "replication: TO follows FROM")
}

// checkModules names modules whose data the target cannot hold.
func (m *Migration) checkModules(ctx context.Context) (found []doctor.Finding, _ error) {
	for _, f := range m.from {
		if f.product == "ebb" { // it names its Bloom filters as the module bf; checkLoss counts them
			continue
		}
		v, err := f.do(ctx, "MODULE", "LIST")
		if err != nil {
			found = append(found, finding(doctor.Look, "modules", err.Error(), "ask the source's operator",
				"%s does not list its modules", address(f.server)))
			continue
		}
		for _, module := range v.Elems {
			for i := 0; i+1 < len(module.Elems); i += 2 {
				if module.Elems[i].Str != "name" || module.Elems[i+1].Str == "lua" { // Valkey's script engine has no data
					continue
				}
				grade := doctor.Act
				if module.Elems[i+1].Str == "vectorset" { // Redis 8 has it, with and without data
					grade = doctor.Look
				}
				found = append(found, finding(grade, "modules", "TO refuses values of a module, and ends the replication at its first one",
					"move its keys into plain types, or delete them", "the source has loaded the module %s", module.Elems[i+1].Str))
			}
		}
	}
	if len(found) == 0 {
		found = append(found, finding(doctor.OK, "modules", "", "", "none"))
	}
	return found, nil
}

// notMoved are commands whose absence on the target does not matter to the data or its clients.
var notMoved = []string{"cluster", "sync", "psync", "replconf", "asking", "readonly", "readwrite", "debug", "failover",
	"module", "latency", "memory", "pfdebug", "pfselftest", "sentinel"}

// own are commands of ebb that `ebb migrate` sends itself. The rules that clients have made are counted with the types.
var own = []string{"expiry|rule"}

// checkCommands names commands that clients of the sources have used and the target does not have.
func (m *Migration) checkCommands(ctx context.Context) ([]doctor.Finding, error) {
	calls := map[string]int64{}
	for _, f := range m.from {
		info, err := f.section(ctx, "commandstats")
		if err != nil {
			return nil, err
		}
		for name, line := range info {
			var n int64
			name, ok := strings.CutPrefix(name, "cmdstat_")
			if !ok {
				continue
			}
			if _, err := fmt.Sscanf(line, "calls=%d", &n); err == nil && n > 0 {
				calls[name] += n
			}
		}
	}
	names := slices.Sorted(maps.Keys(calls))
	if len(names) == 0 {
		return []doctor.Finding{finding(doctor.Look, "commands", "", "", "the source has no commandstats")}, nil
	}
	v, err := m.to.do(ctx, append([]string{"COMMAND", "INFO"}, names...)...)
	if isRefusal(err) {
		return []doctor.Finding{finding(doctor.Look, "commands", err.Error(), "allow +command at TO", "TO does not list its commands")}, nil
	}
	if err != nil {
		return nil, err
	}
	var lacks []string
	for i, e := range v.Elems[:min(len(v.Elems), len(names))] {
		base, _, _ := strings.Cut(names[i], "|")
		if len(e.Elems) == 0 && !slices.Contains(notMoved, base) && !slices.Contains(own, names[i]) {
			lacks = append(lacks, fmt.Sprintf("%s (%d calls)", strings.ToUpper(strings.ReplaceAll(names[i], "|", " ")), calls[names[i]]))
		}
	}
	if len(lacks) == 0 {
		return []doctor.Finding{finding(doctor.OK, "commands", "", "", "TO has all %d commands that the source has run (commandstats)",
			len(names))}, nil
	}
	return []doctor.Finding{finding(doctor.Act, "commands", "clients get an error; a write among them ends the replication",
		"change the clients that send them", "TO lacks %s", strings.Join(lacks, ", "))}, nil
}

func (m *Migration) checkMemory(context.Context) ([]doctor.Finding, error) {
	var used int64
	for _, f := range m.from {
		used += number(f.info, "used_memory")
	}
	limit, machine := number(m.to.info, "maxmemory"), number(m.to.info, "total_system_memory")
	what := fmt.Sprintf("the source uses %s; TO may use %s", size(used), size(limit))
	if limit == 0 {
		what = fmt.Sprintf("the source uses %s; TO has no limit on a machine of %s", size(used), size(machine))
	}
	switch {
	case limit > 0 && used > limit, limit == 0 && machine > 0 && used > machine:
		return []doctor.Finding{finding(doctor.Act, "memory", "TO refuses writes, or evicts keys, before it has all data",
			"CONFIG SET maxmemory on TO", "%s", what)}, nil
	case limit > 0 && used > limit/10*8:
		return []doctor.Finding{finding(doctor.Look, "memory", "little is left for growth", "CONFIG SET maxmemory on TO", "%s", what)}, nil
	}
	return []doctor.Finding{finding(doctor.OK, "memory", "", "", "%s", what)}, nil
}

func (m *Migration) checkDatabases(ctx context.Context) ([]doctor.Finding, error) {
	needed, has := m.databasesOf(ctx)
	if has < needed {
		return []doctor.Finding{finding(doctor.Act, "databases", "keys of a database that TO does not have cannot move",
			fmt.Sprintf("start TO with --databases %d", needed), "the source has keys in database %d, and TO has %d databases", needed-1, has)}, nil
	}
	if needed == 0 {
		return []doctor.Finding{finding(doctor.OK, "databases", "", "", "none is in use")}, nil
	}
	return []doctor.Finding{finding(doctor.OK, "databases", "", "", "the highest in use is %d", needed-1)}, nil
}

// databasesOf returns how many databases the sources use, up to the highest with keys, and how many the target has; as many, if it does
// not tell.
func (m *Migration) databasesOf(ctx context.Context) (needed, has int) {
	for _, f := range m.from {
		for _, d := range databases(f.info) {
			needed = max(needed, d.n+1)
		}
	}
	if _, err := fmt.Sscan(m.to.setting(ctx, "databases"), &has); err != nil {
		has = needed
	}
	return needed, has
}

// checkHold says whether the sources can hold writes for the cutover.
func (m *Migration) checkHold(context.Context) ([]doctor.Finding, error) {
	if err := m.holders(); err != nil {
		return []doctor.Finding{finding(doctor.Act, "cutover", "without it TO could miss the last writes",
			"replicate FROM to a server of Redis 6.2 or later first, and move from there; or stop the clients, save, and let `follow` load the file",
			"%v", err)}, nil
	}
	return nil, nil
}

// checkUsers says what else lies on a server and does not move.
func (m *Migration) checkUsers(ctx context.Context) ([]doctor.Finding, error) {
	v, err := m.from[0].do(ctx, "ACL", "USERS")
	if err != nil || len(v.Elems) < 2 {
		return nil, nil //nolint:nilerr // before 6.0 there are none, and a user may not list them
	}
	return []doctor.Finding{finding(doctor.Look, "users", "ACL users are not data, and do not move",
		"copy the lines of ACL LIST into TO's aclfile",
		"the source has %d users", len(v.Elems))}, nil
}

func (m *Migration) checkFile(ctx context.Context) ([]doctor.Finding, error) {
	files, err := dataFiles(m.file)
	if err != nil {
		return nil, err
	}
	target, err := m.checkTarget(ctx)
	if err != nil {
		return nil, err
	}
	var bytes int64
	for _, f := range files {
		if info, err := os.Stat(f.name); err == nil {
			bytes += info.Size()
		}
		head, err := beginning(f.name)
		if err == nil {
			err = recognized(head)
		}
		if err != nil {
			return []doctor.Finding{finding(doctor.Act, "from", err.Error(), "name an RDB file, an append-only file or their directory",
				"%s cannot be loaded", f.name), target}, nil
		}
	}
	return []doctor.Finding{
		finding(doctor.OK, "from", "", "", "%s: %d file(s), %s; `ebb check` reads them through", m.file, len(files), size(bytes)),
		target,
	}, nil
}
