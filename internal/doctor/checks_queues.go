package doctor

import (
	"fmt"
	"strings"
)

// mostQueues is the number of delay queues that the check looks at: two round trips for each.
const mostQueues = 1000

// queues looks at what becomes of the jobs of ebb's delay queues that fail, in the connection's database.
func queues(f *facts) []Finding {
	if f.product != "ebb" {
		return nil
	}
	names, ok := f.delayQueues()
	if !ok || len(names) == 0 {
		return nil
	}
	all := make(map[string]map[string]string, len(names))
	for _, name := range names {
		if v, ok := f.ask("DQ.INFO", name); ok {
			all[name] = pairs(v.Elems)
		}
	}
	var found []Finding
	dead := 0.0
	seen := map[string]bool{} // dead-letter queues
	for _, name := range names {
		q := all[name]
		target := q["dead-letter"]
		if n := number(q["dropped"]); n > 0 && target == "" {
			found = append(found, one(Look, "queues", fmt.Sprintf("%s has dropped %.0f jobs that were delivered too often", name, n),
				"these jobs are lost: the queue has MAXDELIVERIES and no DEADLETTER",
				fmt.Sprintf("DQ.CONFIG %s DEADLETTER %s", quoted(name), quoted(deadLetters(name))))...)
		}
		if reason := q["deliver-error"]; reason != "" {
			found = append(found, one(Act, "queues", fmt.Sprintf("%s cannot deliver to the stream %s: %s", name, q["deliver"], reason),
				"its jobs wait", "",
				"TYPE "+quoted(q["deliver"])+" shows what the key holds; DQ.CONFIG "+quoted(name)+" DELIVER names another stream")...)
		}
		d := all[target]
		if target == "" || seen[target] || d == nil {
			continue
		}
		seen[target] = true
		n, limit := jobs(d), number(d["max-len"])
		dead += n
		again := fmt.Sprintf("DQ.MOVE %s %s COUNT 10", quoted(target), quoted(name))
		how := "DQ.PEEK " + quoted(target) + " COUNT 10 shows jobs"
		switch {
		case limit > 0 && n >= limit:
			found = append(found, one(Act, "queues", fmt.Sprintf("the dead letters of %s, %s, are full: %.0f jobs", name, target, n),
				"a job that fails is due again at once, forever", again, "which runs ten of them again; "+how)...)
		case limit == 0 && n > 0:
			found = append(found, one(Look, "queues", fmt.Sprintf("the dead letters of %s, %s, have %.0f jobs and no bound", name, target, n),
				"jobs that fail take memory until a program removes them", "DQ.CONFIG "+quoted(target)+" MAXLEN 10000",
				how+", and "+again+" runs them again")...)
		}
	}
	if len(found) == 0 {
		return fine("queues", "%d delay queues, %.0f dead letters", len(all), dead)
	}
	return found
}

// deadLetters returns a name for the dead letters of a queue, which has the queue's hash tag.
func deadLetters(name string) string {
	if strings.Contains(name, "{") {
		return name + ":dead"
	}
	return "{" + name + "}:dead"
}

// jobs returns the number of jobs in a reply to DQ.INFO.
func jobs(info map[string]string) float64 {
	return number(info["delayed"]) + number(info["ready"]) + number(info["leased"])
}

// delayQueues returns the names of up to mostQueues delay queues, of which SCAN finds all without a look at other keys.
func (f *facts) delayQueues() (names []string, ok bool) {
	for cursor := "0"; ; {
		v, ok := f.ask("SCAN", cursor, "COUNT", mostQueues, "TYPE", "delayqueue")
		if !ok || len(v.Elems) != 2 {
			return names, false
		}
		for _, name := range v.Elems[1].Elems {
			if names = append(names, name.String()); len(names) == mostQueues {
				return names, true
			}
		}
		if cursor = v.Elems[0].String(); cursor == "0" {
			return names, true
		}
	}
}

// quoted quotes a name for a command line where it needs it.
func quoted(name string) string {
	if strings.ContainsAny(name, " '\"\\") {
		return fmt.Sprintf("%q", name)
	}
	return name
}
