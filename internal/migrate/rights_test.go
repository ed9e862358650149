package migrate

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/doctor"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/resp"
)

// as makes a user with all rights but some, and returns the URL with its login.
func as(t *testing.T, url, rules string) string {
	t.Helper()
	open(t, url).run(t, "ACL SETUSER mover on >pw ~* &* +@all "+rules)
	return strings.Replace(url, "redis://", "redis://mover:pw@", 1)
}

// A refused question about deadlines was no deadline: keys lived for ever on TO, and the comparison found both sides equal.
func TestARightThatIsMissingEndsACopy(t *testing.T) {
	for _, x := range []struct{ lacks, want string }{
		{"-pexpiretime", "PEXPIRETIME"}, {"-function|list", "FUNCTION"}, {"-function|dump", "FUNCTION"}, {"-dump", "DUMP"},
	} {
		t.Run(x.lacks, func(t *testing.T) {
			from, to := startEbb(t), startEbb(t)
			c := open(t, from)
			c.run(t, "SET session ann EX 1000")
			c.run(t, `FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"`)
			o := Options{From: []string{as(t, from, x.lacks)}, To: to, Scan: true, Compare: true}
			said, err := step(t, o, (*Migration).Cutover)
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%v\n%s", err, said)
			}
			c.run(t, "SET accepts writes")
		})
	}
}

func TestVerifyDoesNotTakeARefusedQuestionForEquality(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	open(t, from).run(t, "SET session ann EX 1000")
	open(t, to).run(t, "SET session ann")
	said, err := step(t, Options{From: []string{as(t, from, "-pexpiretime")}, To: as(t, to, "-pexpiretime")}, (*Migration).Verify)
	if err == nil || !strings.Contains(err.Error(), "PEXPIRETIME") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestAnErrorNamesItsSide(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	fill(t, open(t, from), 10, true)
	for _, x := range []struct{ lacks, want string }{{"-scan", "SCAN: NOPERM"}, {"-select", "SELECT 5: NOPERM"}} {
		o := Options{From: []string{as(t, from, x.lacks+" -expiry")}, To: to}
		said, err := step(t, o, (*Migration).Verify)
		if err == nil || !strings.HasPrefix(err.Error(), "FROM ") || !strings.Contains(err.Error(), x.want) ||
			strings.Count(err.Error(), "FROM ") > 1 {
			t.Errorf("%s: %v\n%s", x.lacks, err, said)
		}
	}
}

// A hold that was refused held nothing.
func TestARefusedHoldSaysThatNothingWasHeld(t *testing.T) {
	for _, scan := range []bool{false, true} {
		from, to := startEbb(t), startEbb(t)
		open(t, from).run(t, "SET k v")
		said, err := step(t, Options{From: []string{as(t, from, "-client|pause")}, To: to, Scan: scan}, (*Migration).Cutover)
		if err == nil || !strings.Contains(err.Error(), "has refused to hold writes") || !strings.Contains(err.Error(), "no write was held") ||
			strings.Contains(err.Error(), "accepts writes again") {
			t.Errorf("scan %t: %v\n%s", scan, err, said)
		}
	}
}

// A lock may expire after its DUMP and before its PEXPIRETIME. Restored without a deadline it would be held for ever.
func TestAKeyThatExpiresBetweenTheTwoQuestionsIsGone(t *testing.T) {
	asked := time.UnixMilli(1000)
	for _, x := range []struct {
		reply resp.Value
		exact bool
		want  state
	}{
		{resp.Value{Kind: resp.KindInt, Int: -2}, true, state{}},
		{resp.Value{Kind: resp.KindInt, Int: -2}, false, state{}},
		{resp.Value{Kind: resp.KindInt, Int: -1}, true, state{exists: true, payload: "p"}},
		{resp.Value{Kind: resp.KindInt, Int: -1}, false, state{exists: true, payload: "p"}},
		{resp.Value{Kind: resp.KindInt, Int: 5000}, true, state{exists: true, payload: "p", deadline: 5000}},
		{resp.Value{Kind: resp.KindInt, Int: 5000}, false, state{exists: true, payload: "p", deadline: 6000}},
		{resp.Value{Kind: resp.KindInt}, false, state{exists: true, payload: "p", deadline: 1000}},
		{resp.Value{Kind: resp.KindError, Str: "MOVED 1 host:1"}, true, state{moved: true}},
	} {
		got := state{exists: true, payload: "p"}
		if err := got.setDeadline(x.reply, x.exact, asked); err != nil || got != x.want {
			t.Errorf("%v (exact %t): %+v, %v, want %+v", x.reply, x.exact, got, err, x.want)
		}
	}
	s := state{exists: true}
	if err := s.setDeadline(resp.Value{Kind: resp.KindError, Str: "NOPERM no"}, true, asked); err == nil {
		t.Errorf("%+v", s)
	}
}

// pageRights returns the rights that the guide lists for a task at a server.
func pageRights(t *testing.T, task, at string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(task) + ` \| ` + at + ` \| (?:also )?` +
		"`([^`]+)`").FindStringSubmatch(string(page))
	if row == nil {
		t.Fatalf("the guide has no rights for %s at %s", task, at)
	}
	return strings.ReplaceAll(row[1], `\|`, "|")
}

func TestTheUsersOfTheGuideMayDoWhatItSays(t *testing.T) {
	servers := map[string]func() string{"ebb": func() string { return startEbb(t) }}
	if !realserver.Alone() {
		servers["redis"] = func() string { return realURL(t, realserver.Redis7) }
	}
	both := pageRights(t, "`verify`, `--compare`", "both")
	for name, start := range servers {
		for path, scan := range map[string]bool{"replication": false, "copying": true} {
			from, to := start(), startEbb(t)
			c := open(t, from)
			fill(t, c, 10, true)
			c.run(t, `FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"`)
			atFrom, atTo := "-@all "+pageRights(t, path, "FROM"), "-@all "+pageRights(t, path, "TO")
			if name == "ebb" {
				atFrom, atTo = atFrom+" +expiry|rule", atTo+" +expiry|rule"
			}
			o := Options{From: []string{as(t, from, atFrom)}, To: as(t, to, atTo), Scan: scan, Once: true}
			m, _ := migrating(t, o)
			if found, err := m.Check(t.Context()); err != nil {
				t.Errorf("%s by %s: %v, %v", name, path, found, err)
			}
			if !scan {
				if said, err := step(t, o, (*Migration).Follow); err != nil {
					t.Errorf("%s by %s: %v\n%s", name, path, err, said)
				}
			}
			o.From[0], o.To, o.Compare = as(t, from, atFrom+" "+both), as(t, to, atTo+" "+both), true
			if said, err := step(t, o, (*Migration).Cutover); err != nil || strings.Contains(said, "NOPERM") ||
				strings.Contains(said, "not compared") {
				t.Errorf("%s by %s: %v\n%s", name, path, err, said)
			}
			if said, err := step(t, o, (*Migration).Verify); err != nil || strings.Contains(said, "not compared") {
				t.Errorf("%s by %s: %v\n%s", name, path, err, said)
			}
		}
	}
}

// The least rights by which a server can be replicated.
func TestAUserWithoutCommandMoves(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	fill(t, open(t, from), 10, false)
	o := Options{From: []string{as(t, from, "-@all +ping +info +psync +replconf +client|pause")}, To: as(t, to, "-command")}
	if f := findingOf(t, o, "commands"); f.Grade != doctor.Look || !strings.Contains(f.What, "does not list its commands") {
		t.Errorf("%+v", f)
	}
	if said, err := step(t, o, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{from}, to)
}
