package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/conn"
)

// mostDatabases is the number of databases in which the check looks for rules.
const mostDatabases = 64

// rules looks at the expiry rules of ebb, in all databases if one of them was suspended.
func rules(f *facts) []Finding {
	if f.product != "ebb" {
		return nil
	}
	var suspended []string
	n, lost := 0, f.num("rule_events_suspended")
	f.eachRule(lost > 0, func(where string, rule map[string]string) {
		n++
		if number(rule["since"]) > 0 { // it is suspended now
			suspended = append(suspended, rule["name"]+where+" ("+rule["why"]+")")
		}
	})
	switch {
	case len(suspended) > 0:
		return one(Act, "events", "suspended expiry rules: "+strings.Join(suspended, ", "), "their expirations are not recorded", "",
			"the target's key holds another type, the queue is full, or memory is: EXPIRY RULE LIST says which")
	case lost > 0:
		return one(Look, "events", fmt.Sprintf("%.0f expirations were not recorded, because their rule was suspended", lost),
			"programs that read the rule's stream or queue have missed them", "",
			"EXPIRY RULE LIST in the database of the rule counts them; CONFIG RESETSTAT sets the counts back to 0")
	case n == 0:
		return nil
	}
	return fine("events", "%d expiry rules record expirations", n)
}

// eachRule calls see for the rules of the connection's database, and with everywhere for those of the others too. where is "" for the
// former, and names the database of the others.
func (f *facts) eachRule(everywhere bool, see func(where string, rule map[string]string)) {
	list := func(where string, v conn.Value) {
		for _, rule := range v.Elems {
			see(where, pairs(rule.Elems))
		}
	}
	v, ok := f.ask("EXPIRY", "RULE", "LIST")
	if !ok {
		return
	}
	list("", v)
	if !everywhere || f.Database == nil {
		return
	}
	for db := range min(int(f.setting("databases")), mostDatabases) {
		if db == f.DB {
			continue
		}
		if v, err := f.rulesOf(db); err == nil {
			list(fmt.Sprintf(" of database %d", db), v)
		}
	}
}

func (f *facts) rulesOf(db int) (conn.Value, error) {
	within, cancel := context.WithTimeout(f.ctx, f.Reply)
	defer cancel()
	c, err := f.Database(within, db)
	if err != nil {
		return conn.Value{}, err
	}
	defer func() { _ = c.Close() }()
	v, err := c.Do(within, "EXPIRY", "RULE", "LIST")
	if err != nil {
		return v, err
	}
	return v, v.Err()
}

// streams looks at consumer groups that are about to miss entries: a rule keeps a number of entries of its stream. What XADD keeps of
// other streams, a server does not say.
func streams(f *facts) []Finding {
	if f.product != "ebb" {
		return nil
	}
	var found []Finding
	seen := map[string]bool{}
	f.eachRule(false, func(_ string, rule map[string]string) {
		stream, limit := rule["stream"], number(rule["maxlen"])
		if stream == "" || limit == 0 || seen[stream] {
			return
		}
		seen[stream] = true
		v, ok := f.ask("XINFO", "GROUPS", stream)
		if !ok {
			return
		}
		for _, group := range v.Elems {
			g := pairs(group.Elems)
			if behind := number(g["lag"]); behind > 0.8*limit {
				found = append(found, one(Look, "events", fmt.Sprintf("the group %s is %.0f entries behind in the stream %s, which keeps %.0f",
					g["name"], behind, stream, limit), "entries that it has not read are trimmed", "",
					"start more consumers; EXPIRY RULE SET "+quoted(rule["name"])+" with a larger MAXLEN keeps more")...)
			}
		}
	})
	return found
}
