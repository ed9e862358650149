package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Replication carries ebb's expiry rules. A copy sets them at the cutover, behind the streams to which they write: a target
// that has them earlier records the expirations that the source records as well.

// holdRules reports whether all servers are ebb, and so have rules.
func (m *Migration) holdRules() bool {
	for _, p := range append([]*peer{m.to}, m.from...) {
		if p.product != "ebb" {
			return false
		}
	}
	return true
}

// rule is an expiry rule.
type rule struct {
	n    int      // of the rules of its database, in the order in which they were set
	args []string // after its name in EXPIRY RULE SET
}

// rulesOf returns the rules of all databases of an ebb; the place has the rule's name.
func rulesOf(ctx context.Context, p *peer) (map[place]rule, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.nc.Close()
	limit, err := strconv.Atoi(p.setting(ctx, "databases"))
	if err != nil { // it does not tell
		limit = 16
	}
	for db := range limit {
		c.add("SELECT", strconv.Itoa(db))
		c.add("EXPIRY", "RULE", "LIST")
	}
	if err := c.flush(ctx); err != nil {
		return nil, err
	}
	all := map[place]rule{}
	for db := range limit {
		selected, err := c.reply(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.side, p, err)
		}
		list, err := c.reply(ctx)
		if refused, ok := errors.AsType[resp.ReplyError](selected.Err()); ok && refused.Code() == "ERR" && err == nil {
			continue // there are fewer
		}
		if err == nil {
			err = cmp.Or(selected.Err(), list.Err())
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: EXPIRY RULE LIST: %w", p.side, p, err)
		}
		for n, e := range list.Elems {
			name, args := ruleArguments(e)
			all[place{db, name}] = rule{n, args}
		}
	}
	return all, nil
}

// ruleArguments returns the name of an entry of EXPIRY RULE LIST, and the arguments that follow it in EXPIRY RULE SET.
func ruleArguments(e resp.Value) (name string, args []string) {
	f := map[string]resp.Value{}
	for i := 0; i+1 < len(e.Elems); i += 2 {
		f[e.Elems[i].Str] = e.Elems[i+1]
	}
	args = []string{"MATCH", f["match"].Str, "LEVEL"}
	for _, level := range f["levels"].Elems {
		args = append(args, level.Str)
	}
	if queue := f["queue"].Str; queue != "" {
		args = append(args, "TO", "QUEUE", queue, "DELAY", fmt.Sprint(f["delay"].Int), "PRIORITY", fmt.Sprint(f["priority"].Int))
	} else {
		args = append(args, "TO", f["stream"].Str, "MAXLEN")
		if f["approximate"].Int == 1 {
			args = append(args, "~")
		}
		args = append(args, fmt.Sprint(f["maxlen"].Int))
	}
	if bytes := f["maxbytes"].Int; bytes >= 0 {
		args = append(args, "WITHVALUE", fmt.Sprint(bytes))
	}
	return f["name"].Str, args
}

// sourceRules returns the rules of all sources.
func (m *Migration) sourceRules(ctx context.Context) (map[place]rule, error) {
	all := map[place]rule{}
	for _, f := range m.from {
		rules, err := rulesOf(ctx, f)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, rules)
	}
	return all, nil
}

// announceRules says that a copy has rules to set.
func (c *copier) announceRules(ctx context.Context) error {
	if !c.m.holdRules() {
		return nil
	}
	rules, err := c.m.sourceRules(ctx)
	if err != nil {
		return fmt.Errorf("expiry rules are not copied: %w", err)
	}
	if len(rules) > 0 {
		c.m.out.line("FROM has %d expiry rules: `cutover` sets them on TO", len(rules))
	}
	return nil
}

// rules makes the target's rules those of the sources.
func (c *copier) rules(ctx context.Context) error {
	if !c.m.holdRules() {
		return nil
	}
	want, err := c.m.sourceRules(ctx)
	if err != nil {
		return fmt.Errorf("expiry rules are not copied: %w", err)
	}
	has, err := rulesOf(ctx, c.m.to)
	if err == nil {
		err = c.m.setRules(ctx, has, want)
	}
	if err != nil {
		return err
	}
	if len(want) > 0 {
		c.m.out.line("TO has the %d expiry rules of FROM; expirations while writes were held are not recorded", len(want))
	}
	return nil
}

// setRules turns the target's rules, which are has, into want.
func (m *Migration) setRules(ctx context.Context, has, want map[place]rule) error {
	to, err := m.to.dial(ctx)
	if err != nil {
		return err
	}
	defer to.nc.Close()
	run := func(r place, args ...string) error {
		if err := to.use(ctx, r.db); err != nil {
			return err
		}
		if _, err := to.do(ctx, append([]string{"EXPIRY", "RULE"}, args...)...); err != nil {
			return fmt.Errorf("TO %s: the expiry rule %s of database %d: %w", m.to, wire.AppendQuoted(nil, r.key), r.db, err)
		}
		return nil
	}
	for r := range has {
		if _, ok := want[r]; !ok {
			if err := run(r, "DEL", r.key); err != nil {
				return err
			}
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(want), func(a, b place) int { return cmp.Or(a.db-b.db, want[a].n-want[b].n) })
	for _, r := range inOrder {
		if slices.Equal(has[r].args, want[r].args) {
			continue
		}
		if err := run(r, append([]string{"SET", r.key}, want[r].args...)...); err != nil {
			return err
		}
	}
	return nil
}

// rules compares the rules. Those that differ are looked at again, as functions are.
func (c *comparison) rules(ctx context.Context) error {
	if !c.m.holdRules() {
		return nil
	}
	var differ []string
	for round := 1; round <= sureRounds; round++ {
		from, err := c.m.sourceRules(ctx)
		if err == nil {
			err = c.settle(ctx, round)
		}
		if err != nil && !isRefusal(err) {
			return err
		}
		var to map[place]rule
		if err == nil {
			to, err = rulesOf(ctx, c.m.to)
		}
		if isRefusal(err) {
			c.m.out.line("expiry rules are not compared: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		if differ = differentRules(from, to); len(differ) == 0 {
			return nil
		}
	}
	c.rulesDiffer = len(differ)
	c.shown = append(c.shown, differ[:min(len(differ), shownKeys)]...)
	return nil
}

func differentRules(from, to map[place]rule) (lines []string) {
	all := maps.Clone(from)
	maps.Copy(all, to)
	for r := range all {
		a, inFrom := from[r]
		b, inTo := to[r]
		why := "FROM does not have it"
		switch {
		case slices.Equal(a.args, b.args):
			continue
		case !inTo:
			why = "TO does not have it"
		case inFrom:
			why = fmt.Sprintf("%s on FROM, %s on TO", strings.Join(a.args, " "), strings.Join(b.args, " "))
		}
		lines = append(lines, fmt.Sprintf("database %d, expiry rule %s: %s", r.db, wire.AppendQuoted(nil, r.key), why))
	}
	slices.Sort(lines)
	return lines
}
