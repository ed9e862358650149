package browsertest_test

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/console/browsertest"
)

// orphan makes a queue whose job is late by an hour, and one that has a dead letter.
func orphan(t *testing.T, s *browsertest.Server) {
	t.Helper()
	s.Do("DQ.CONFIG", "{mail}", "MAXDELIVERIES", 1, "DEADLETTER", "{mail}:dead")
	s.Do("DQ.ADD", "{mail}", "bad", "x")
	id, token := pop(t, s, "{mail}")
	s.Do("DQ.NACK", "{mail}", id, token)
	s.Do("DQ.ADD", "orphan", "job", "x", "AT", time.Now().Add(-time.Hour).UnixMilli())
}

// The page shows what the server knows: the page need not have watched the queue, and a phone shows it too.
func TestAQueueWithoutAWorkerIsNamedAtOnce(t *testing.T) {
	s := browsertest.Serve(t)
	orphan(t, s)
	for name, o := range map[string]browsertest.Options{"desktop": {}, "phone": {Width: 390, Height: 844, Mobile: true}} {
		t.Run(name, func(t *testing.T) {
			p := browsertest.Open(t, s.URL+"#/queues", o)
			p.Eventually(`$('#screen tbody tr')`)
			first := p.Text(`$('#screen tbody tr').innerText`)
			p.Eventually(`/^orphan\s+no worker/.test($('#screen tbody tr').innerText)`)
			p.Eventually(`seen($('#screen tbody tr [data-label="Late by"]')) && $('#screen tbody tr').innerText.includes('1 h 00 min')`)
			p.Eventually(`$$('#screen tbody tr').length === 3 && $$('#screen .badge.look').length === 1`)
			t.Logf("the first row: %q", first)
			p.Shot("queues-" + name)
		})
	}
}

func TestNowNamesWhatStandsStillBeforeWhatHasHappened(t *testing.T) {
	s := browsertest.Serve(t)
	orphan(t, s)
	s.Do("DQ.CONFIG", "a", "MAXDELIVERIES", 1, "DEADLETTER", "{a}:dead")
	s.Do("DQ.ADD", "{a}:dead", "1", "x")
	s.Do("SET", "ended", "not a stream")
	s.Do("EXPIRY", "RULE", "SET", "lost", "MATCH", "tmp:*", "TO", "ended")
	s.Do("SET", "tmp:1", "x", "PX", 1)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Eventually(`$$('#screen .attention li').length === 4`)
	want := "lost orphan {mail} a"
	p.Eventually(`$$('#screen .attention li a').map((a) => a.innerText).sort().join() === ` + browsertest.Quote("a,lost,orphan,{mail}"))
	got := p.Text(`$$('#screen .attention li a').map((a) => a.innerText).join(' ')`)
	if got != want && got != "lost orphan a {mail}" {
		t.Errorf("Now names %s, want %s", got, want)
	}
	p.Shot("now-order")
}
