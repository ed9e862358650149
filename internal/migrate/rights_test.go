package migrate

import (
	"strings"
	"testing"
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
