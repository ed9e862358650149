package migrate

import (
	"strings"
	"testing"
	"time"

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
