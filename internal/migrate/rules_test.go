package migrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestExpiryRulesMoveByCopying(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	c, on := open(t, from), open(t, to)
	for _, line := range []string{"SET k v", "EXPIRY RULE SET all MATCH * TO events",
		`EXPIRY RULE SET "odd name" MATCH "k *" LEVEL KEY FIELD FRESH TO QUEUE MAXLEN ~ 9 WITHVALUE`,
		"EXPIRY RULE SET jobs MATCH k* LEVEL KEY TO QUEUE work WITHVALUE 7 DELAY 5 PRIORITY 3",
		"SELECT 7", "EXPIRY RULE SET exact MATCH x LEVEL MEMBER TO stream MAXLEN 5", "SELECT 0"} {
		c.run(t, line)
	}
	on.run(t, "EXPIRY RULE SET old MATCH * TO gone")
	o := Options{From: []string{from}, To: to, Scan: true}
	said, err := step(t, o, (*Migration).Verify)
	if !errors.Is(err, errDiffer) || !strings.Contains(err.Error(), "5 expiry rules") ||
		!strings.Contains(said, `rule "exact": TO does not have it`) {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err = step(t, o, (*Migration).Cutover); err == nil || !strings.Contains(err.Error(), "holds 1 expiry rules, and must be empty") {
		t.Error(err)
	}
	o.Replace = true
	if said, err = step(t, o, (*Migration).Cutover); err != nil || !strings.Contains(said, "TO has the 4 expiry rules of FROM") {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)
	for _, db := range []string{"SELECT 0", "SELECT 7"} {
		c.run(t, db)
		on.run(t, db)
		a, b := c.run(t, "EXPIRY RULE LIST"), on.run(t, "EXPIRY RULE LIST")
		for i := range a.Elems { // without the counts and the instant of SET
			if i >= len(b.Elems) || fmt.Sprint(a.Elems[i].Elems[:14]) != fmt.Sprint(b.Elems[i].Elems[:14]) {
				t.Errorf("%s: %v, want %v", db, b, a)
			}
		}
		if len(a.Elems) == 0 || len(a.Elems) != len(b.Elems) {
			t.Errorf("%s: %d rules, want %d", db, len(b.Elems), len(a.Elems))
		}
	}
	on.run(t, "EXPIRY RULE SET exact MATCH y LEVEL MEMBER TO stream MAXLEN 5")
	if said, err = step(t, o, (*Migration).Verify); !errors.Is(err, errDiffer) ||
		!strings.Contains(said, "MATCH x LEVEL member TO stream MAXLEN 5 on FROM") {
		t.Errorf("%v\n%s", err, said)
	}
	if said, err = step(t, Options{From: []string{as(t, from, "-expiry")}, To: startEbb(t), Scan: true}, (*Migration).Cutover); err == nil ||
		!strings.Contains(err.Error(), "expiry rules are not copied") {
		t.Errorf("%v\n%s", err, said)
	}
}
