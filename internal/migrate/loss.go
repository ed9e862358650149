package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/wire"
)

// lost describes each kind of ebb's data that redis-server does not have, by its name in DUMP payloads: what it is, and
// what becomes of it on a redis-server that replicates from ebb.
var lost = map[string][2]string{
	"hash":      {"hashes with deadlines of fields", "the fields stay, without their deadlines"},
	"ebb-tsets": {"sets with deadlines of members", "the members stay, without their deadlines"},
	"ebb-tzset": {"sorted sets with deadlines of members", "the members stay, without their deadlines"},
	"ebb-tlist": {"lists with deadlines of elements", "the elements stay, without their deadlines"},
	"rules":     {"expiry rules", "they are dropped; their streams stay"},
	"MBbloom--": {"Bloom filters", "they are dropped"},
}

// losses counts what the target cannot hold: the keys and the items of each kind, by the keys of lost and by the
// types' names.
func (m *Migration) losses(ctx context.Context) (map[string][2]int64, error) {
	f := m.from[0]
	c, err := f.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.nc.Close()
	found := map[string][2]int64{}
	fieldsToo := m.holdsFields(ctx)
	began, seen, all := time.Now(), int64(0), keysOf(f.info)
	for _, d := range databases(f.info) {
		kinds, err := f.dial(ctx)
		if err != nil {
			return nil, err
		}
		err = scan(ctx, c, d.n, compared, func(keys []string) (bool, error) {
			states, err := read(ctx, f, c, d.n, keys)
			if err != nil {
				return false, err
			}
			for i, s := range states {
				name, timed, err := m.cannotHold(ctx, kinds, d.n, keys[i], s, fieldsToo)
				if err != nil {
					return false, err
				}
				if name != "" {
					n := found[name]
					found[name] = [2]int64{n[0] + 1, n[1] + timed}
				}
			}
			seen += int64(len(keys))
			m.out.progress(time.Second, "count %3d %%  %d of %d keys, %d keys/s", percent(seen, all), seen, all, perSecond(seen, began))
			return true, nil
		})
		if err == nil {
			err = m.countRules(ctx, kinds, d.n, found)
		}
		kinds.nc.Close()
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// holdsFields reports whether the target has deadlines of hash fields.
func (m *Migration) holdsFields(ctx context.Context) bool {
	v, err := m.to.do(ctx, "COMMAND", "INFO", "hpexpireat")
	return err == nil && len(v.Elems) == 1 && len(v.Elems[0].Elems) > 0
}

// cannotHold returns the kind of a key's data that the target does not have, and how many items have a deadline.
func (m *Migration) cannotHold(ctx context.Context, c *client, db int, key string, s state, fields bool) (string, int64, error) {
	if !s.exists {
		return "", 0, nil
	}
	v, err := readValue(s.payload, false)
	if err != nil {
		return "", 0, fmt.Errorf("FROM %s: the value of %s: %w", m.from[0], wire.AppendQuoted(nil, key), err)
	}
	switch {
	case v.kind == "hash" && v.timed > 0 && !fields, strings.HasPrefix(v.kind, "ebb-t"):
		return v.kind, int64(v.timed), nil
	case slices.Contains([]string{"string", "list", "set", "zset", "hash", "stream"}, v.kind):
		return "", 0, nil
	}
	if err := c.use(ctx, db); err != nil {
		return "", 0, err
	}
	kind, err := c.do(ctx, "TYPE", key)
	return kind.Str, 0, err
}

func (m *Migration) countRules(ctx context.Context, c *client, db int, found map[string][2]int64) error {
	if err := c.use(ctx, db); err != nil {
		return err
	}
	v, err := c.do(ctx, "EXPIRY", "RULE", "LIST")
	if err != nil {
		return fmt.Errorf("FROM %s: EXPIRY RULE LIST: %w", m.from[0], err)
	}
	if n := int64(len(v.Elems)); n > 0 {
		found["rules"] = [2]int64{found["rules"][0] + n}
	}
	return nil
}

// lossLine describes one kind of loss.
func lossLine(name string, n [2]int64) (what, becomes string) {
	known, ok := lost[name]
	if !ok {
		return fmt.Sprintf("%d keys of type %s", n[0], name), "they are dropped"
	}
	if n[1] > 0 {
		return fmt.Sprintf("%d %s (%d deadlines)", n[0], known[0], n[1]), known[1]
	}
	return fmt.Sprintf("%d %s", n[0], known[0]), known[1]
}

// checkLoss is the part of Check about what the target cannot hold.
func (m *Migration) checkLoss(ctx context.Context) (found []doctor.Finding, _ error) {
	if m.to.product == "ebb" || m.from[0].product != "ebb" {
		return nil, nil
	}
	all, err := m.losses(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		what, becomes := lossLine(name, all[name])
		found = append(found, finding(doctor.Act, "types", m.to.product+" does not have this: "+becomes,
			"delete them, or --accept-loss", "%s", what))
	}
	if len(found) == 0 {
		found = append(found, finding(doctor.OK, "types", "", "", "TO can hold all %d keys", keysOf(m.from[0].info)))
	}
	return found, nil
}

// refuseLoss prints what the target cannot hold, and returns an error if there is any and it is not accepted.
func (m *Migration) refuseLoss(ctx context.Context) error {
	all, err := m.losses(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		what, becomes := lossLine(name, all[name])
		m.out.line("TO cannot hold %s: %s", what, becomes)
	}
	switch {
	case len(all) == 0:
		m.out.line("TO can hold all %d keys", keysOf(m.from[0].info))
	case !m.o.AcceptLoss:
		return fmt.Errorf("TO %s cannot hold %d kinds of data of FROM; --accept-loss moves the rest", m.to, len(all))
	}
	if ok, why := m.byLink(); !ok {
		delete(all, "rules") // by copying they are never sent
		if len(all) > 0 {
			return fmt.Errorf("TO %s refuses the payloads of %d kinds of data of FROM, and would miss their keys whole. By replication FROM sends "+
				"what TO can hold of them, but keys are copied here, because %s: delete these keys, or move by replication", m.to, len(all), why)
		}
	}
	return nil
}
