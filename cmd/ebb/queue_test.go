package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/queue"
)

// runQueue runs `ebb queue` on the server of a URL.
func runQueue(t *testing.T, url string, args ...string) (out string, err error) {
	t.Helper()
	var said bytes.Buffer
	cmd := queueCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(args, "-u", url))
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	err = cmd.ExecuteContext(t.Context())
	return said.String(), err
}

func TestQueueShowsAndManagesQueuesOfEbb(t *testing.T) {
	s := startServe(t, "--http", "127.0.0.1:0")
	testQueueCommand(t, loadgen.Target{Network: "unix", Addr: s.socket}, "unix://"+s.socket)
}

func TestQueueShowsAndManagesQueuesOfRedis(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	testQueueCommand(t, loadgen.Target{Addr: addr}, "redis://"+addr)
}

func testQueueCommand(t *testing.T, target loadgen.Target, url string) {
	ctx := t.Context()
	c, err := target.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	q, err := queue.New[string](c, "mail")
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	push := func(id string, o queue.PushOptions) {
		t.Helper()
		o.ID = id
		_, err := q.Push(ctx, "to "+id, o)
		must(err)
	}
	push("hangs", queue.PushOptions{})
	_, err = q.TryPop(ctx)
	must(err)
	push("dies", queue.PushOptions{Headers: map[string]string{"trace": "t1"}})
	dying, err := q.TryPop(ctx)
	must(err)
	must(dying.Bury(ctx, "no mailbox"))
	push("waits", queue.PushOptions{Delay: time.Hour})
	_, err = q.Schedule(ctx, "nightly", "all", queue.Cron("0 3 * * *", "Europe/Berlin"))
	must(err)

	says := func(want []string, args ...string) {
		t.Helper()
		out, err := runQueue(t, url, args...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		for _, w := range want {
			// Columns are as wide as their content.
			if !strings.Contains(strings.Join(strings.Fields(out), " "), w) {
				t.Errorf("%q: %q is missing in\n%s", args, w, out)
			}
		}
	}
	says([]string{"QUEUE READY DELAYED LEASED DEAD LATE SCHEDULES PAUSED", `"mail" 0 1 1 1 0s 1`}, "list")
	says([]string{`"mail" 0 1`}, "list", "ma*")
	if out, _ := runQueue(t, url, "list", "x*"); strings.Contains(out, "mail") {
		t.Error(out)
	}
	says([]string{`"hangs" leased 1`, `"waits" delayed 0`, `"to waits"`}, "peek", "mail")
	says([]string{`"waits" delayed 0`}, "peek", "mail", "--state", "delayed", "-n", "1")
	says([]string{`"dies" 1`, `"no mailbox" "to dies"`}, "peek", "mail", "--state", "dead")
	says([]string{`"nightly" cron "0 3 * * *" in Europe/Berlin`, `- 0 0 0 "all"`}, "schedules", "mail")
	says(nil, "pause", "mail", "--for", "1h")
	says([]string{`1 until 20`}, "list")
	says(nil, "pause", "mail")
	says([]string{`1 yes`}, "list")
	if _, err := q.TryPop(ctx); err == nil {
		t.Error("a paused queue delivered a job")
	}
	says(nil, "resume", "mail")
	says([]string{"3"}, "requeue", "mail", "hangs", "dies", "waits")
	says([]string{`"mail" 3 0 0 0`}, "list")
	j, err := q.TryPop(ctx)
	must(err)
	must(j.Bury(ctx, "no"))
	says([]string{"1"}, "requeue", "mail", "--dead")
	says([]string{`"mail" 3 0 0 0`}, "list")

	// Jobs are rescheduled, and jobs and schedules removed.
	push("later", queue.PushOptions{})
	says([]string{"1"}, "cancel", "mail", "waits", "none")
	says(nil, "reschedule", "mail", "later", "--in", "2h")
	says([]string{`"later" delayed 0`}, "peek", "mail")
	says([]string{`"mail" 2 1 0 0`}, "list")
	says([]string{"1"}, "unschedule", "mail", "nightly", "none")
	says([]string{"0"}, "unschedule", "mail", "nightly")

	// A misspelt name creates no queue, and the error has the right name.
	for _, args := range [][]string{{"pause", "mial"}, {"resume", "mial"}, {"cancel", "mial", "a"}} {
		const want = `no queue has the name "mial"; there are ["mail"]`
		if out, err := runQueue(t, url, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	says(nil, "pause", "early", "--new")
	says([]string{`"early" 0 0 0 0 0s 0 yes`, `"mail"`}, "list")
	says(nil, "resume", "early")

	for _, args := range [][]string{{"peek", "mail", "--state", "odd"}, {"requeue", "mail"}, {"requeue", "mail", "a", "--dead"},
		{"peek", "mail", "--after", "none"}, {"pause", "mail", "--for", "-1s"},
		{"reschedule", "mail", "none"}, {"reschedule", "mail", "later", "--in", "-1s"}} {
		if out, err := runQueue(t, url, args...); err == nil {
			t.Errorf("%q succeeded: %s", args, out)
		}
	}
}
