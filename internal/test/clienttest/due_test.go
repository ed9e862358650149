package clienttest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// These programs push jobs with the code of the queue, and take them with ZPOPDUE and ZMOVEDUE, or wait for them with PEEK and
// then run the queue's own script. No other server has these commands. The guides docs/guides/coming-from-{bullmq,celery,sidekiq}.md
// describe what they do.

const dueBullmqExpected = `ran: first second third retried retried
counts: active=0 completed=4 delayed=1 failed=0 waiting=0
one wait for each due time: true
order: true
taken: true
left: 1
woken by: bull:many-70:delayed
`

func TestJobsOfBullMQAreTakenWhenTheyAreDue(t *testing.T) {
	playDue(t, bullmq("node/due-bullmq.js"), dueBullmqExpected)
}

const dueCeleryExpected = `unacknowledged: 2
too early: False
in order: True
again: 2 redelivered 0 redelivered
left: 0
same messages: True
scheduled: 3
ran: first second
left: 1
result: done by another worker
ended: 0
`

func TestMessagesOfCeleryAreTakenWhenTheyAreDue(t *testing.T) {
	playDue(t, func(t *testing.T, addr string) string { return pythonWith(t, "celery", "python/due_celery.py", addr) }, dueCeleryExpected)
}

const dueSidekiqExpected = `scheduled: 3
ran: first second
left: schedule=1 retry=0
ran: retried
attempts: 3
polls: 0
ended: 0
ran: moved last
left: 1
ended: 0
order: true
left: true
`

func TestJobsOfSidekiqAreTakenWhenTheyAreDue(t *testing.T) { playDue(t, sidekiq, dueSidekiqExpected) }

// sidekiq plays ruby/due_sidekiq.rb. Debian's package ruby-sidekiq serves the system's Ruby only.
func sidekiq(t *testing.T, addr string) string {
	realserver.Program(t, "ruby")
	for _, name := range []string{"ruby", "/usr/bin/ruby"} {
		if exec.Command(name, "-e", `require "sidekiq"`).Run() == nil {
			return run(t, name, "ruby/due_sidekiq.rb", addr)
		}
	}
	realserver.Require(t, "no ruby with sidekiq (ruby-sidekiq) is installed")
	return ""
}

// playDue compares what a program prints on ebb with what is expected.
func playDue(t *testing.T, play play, expected string) {
	t.Parallel()
	if diff := cmp.Diff(strings.Split(expected, "\n"), strings.Split(play(t, startEbb(t)), "\n")); diff != "" {
		t.Errorf("(-expected +seen)\n%s", diff)
	}
}
