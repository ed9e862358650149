package browsertest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
	"github.com/ebbdb/ebb/resp"
)

func TestTheClientAboveItsLimitStandsOnTopUntilItIsReset(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 10 {
		s.Do("RL.TAKE", fmt.Sprintf("api:user%d", i), 100, 3_600_000, "COST", 90)
	}
	for range 300 {
		s.Do("RL.TAKE", "api:mallory", 5, 3_600_000)
	}
	p := browsertest.Open(t, s.URL+"#/limits", browsertest.Options{})
	top := `$$('#screen section')[0]`
	p.Eventually(top + `.querySelector('tbody tr')?.innerText.includes('api:mallory') && ` + top + `.querySelector('tbody tr').innerText.includes('295')`)
	p.Eventually(`$$('#screen section')[3].querySelectorAll('tbody tr').length === 11`)
	p.Click(`[...` + top + `.querySelectorAll('button')].find((b) => b.innerText === 'Reset')`)
	if command := confirm(p); command != "RL.RESET api:mallory" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(top + `.innerText.includes('No limiter is denying requests')`)
	p.Eventually(`$$('#screen section')[3].querySelectorAll('tbody tr').length === 10`)
	if v := s.Do("RL.TAKE", "api:mallory", 5, 60_000); v.Elems[0].Int != 1 {
		t.Errorf("after the reset the limiter replies %v", v)
	}
}

// A limiter opens from its key, wherever it stands among the others, and leads back to all of them.
func TestALimiterOpensFromItsKeyAmongMany(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 250 {
		s.Do("RL.TAKE", fmt.Sprintf("lim:%04d", i), 5, 3_600_000)
	}
	for range 6 {
		s.Do("RL.TAKE", "lim:0249", 5, 3_600_000)
	}
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("lim:0249"), browsertest.Options{})
	p.Allow(`^status 404: GET .*/api/key\?`) // of the limiter that was reset
	facts := `(() => { const s = text($$('#screen .facts').at(-1)).replace(/\s+/g, ' ');
		return s.includes('Limit 5 requests per 1 h, at most 5 at once')
		&& /Remaining 0 \/ 5/.test(s) && /Next request in 1[12] min/.test(s); })()`
	p.Eventually(facts + ` && seen($('#screen .facts meter')) && !text('#screen').includes('reset-after-us')`)
	p.Shot("key-limiter")
	p.ClickText("Open in Limits")
	p.Eventually(facts + ` && text('#screen h1') === 'lim:0249' && !text('#screen').includes('lim:0248')`)
	p.Eventually(`/Denied per minute\s+2/.test(text('#screen .facts'))`)
	p.Eventually(`(text('#screen .chart table').match(/Remaining 0/g) || []).length > 1`) // it grows each second
	p.Eventually(`$('#screen .chart svg text:nth-of-type(3)')?.textContent === '5'`)      // the axis ends at the limit
	p.Shot("S29-limiter-by-key")
	p.Click(button("Reset"))
	confirm(p)
	p.Eventually(`text('#screen .facts').includes('This limiter does not exist') && !` + button("Reset"))
	p.ClickText("All limiters")
	p.Click(row("lim:0000") + `.querySelector('a')`)
	p.Eventually(`text('#screen h1') === 'lim:0000'`)
	p.ClickText("Show the key")
	p.Eventually(`location.hash.startsWith('#/key?')`)
}

// A limiter with nothing left never shows that the next request is allowed now, and its facts stand in
// columns.
func TestALimiterWithNothingLeftAllowsNoRequestNow(t *testing.T) {
	s := browsertest.Serve(t)
	take := func() bool { return s.Do("RL.TAKE", "api:mallory", 2, 3000).Elems[0].Int == 1 } // one each 1.5 s is allowed
	take()
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("api:mallory"), browsertest.Options{})
	p.Allow(`^status 404: GET .*/api/key\?`) // the limiter was full again before the page read it
	const facts = `text($$('#screen .facts').at(-1)).replace(/\s+/g, ' ')`
	p.Wait("nothing is left", func() bool { return !take() && p.Eval(facts+`.includes('Remaining 0 / 2')`) == true })
	p.Eval(`(() => {
		globalThis.wrong = '';
		const look = () => { const s = ` + facts + `; if (/Remaining 0 \/ 2.*Next request in now/.test(s)) globalThis.wrong = s; };
		new MutationObserver(look).observe($('#screen'), { subtree: true, childList: true, characterData: true });
	})()`)
	for range 3 { // a client takes each request as soon as it is allowed
		p.Wait("the client is allowed a request", take)
	}
	if wrong := p.Text(`globalThis.wrong`); wrong != "" {
		t.Errorf("the page says %q", wrong)
	}
	if p.Text(`getComputedStyle($$('#screen .facts').at(-1)).display`) != "grid" {
		t.Error("the facts stand in no columns")
	}
}

// The TTL and the name of a limiter mean more than those of other keys, and the forms explain it.
func TestTheFormsOfALimiterSayWhatTheyDo(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("RL.TAKE", "api:ann", 5, 3_600_000)
	s.Do("SET", "other", "v", "PX", 3_600_000)
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("api:ann"), browsertest.Options{})
	for label, want := range map[string]string{"TTL": "The limiter is full again when its TTL ends",
		"Remove the TTL": "The limit stays as it is", "Rename": "a new one begins there"} {
		p.Click(button(label))
		p.Eventually(`text('dialog[open]').includes(` + browsertest.Quote(want) + `)`)
		p.Press(kb.Escape)
		p.Eventually(`!$('dialog[open]')`)
	}
	p.Screen("key?k=" + keyURL("other"))
	p.Click(button("Remove the TTL"))
	p.Eventually(`$('dialog[open] pre.command') && !text('dialog[open]').includes('limiter')`)
}

func TestLimitsAreSummedByPrefixAndReservationsCancelled(t *testing.T) {
	s := browsertest.Serve(t)
	for range 3 {
		s.Do("RL.TAKE", "api:ann", 1, 3_600_000)
		s.Do("RL.TAKE", "api:bob", 1, 3_600_000)
	}
	s.Do("RL.RESERVE", "slow", 1, 3_600_000)
	s.Do("RL.RESERVE", "slow", 1, 3_600_000)
	p := browsertest.Open(t, s.URL+"#/limits", browsertest.Options{})
	top := `$$('#screen section')[0]`
	p.Eventually(top + `.querySelectorAll('tbody tr meter').length === 2 && ` + top + `.innerText.includes('gcra')`)
	p.Eventually(`/api:\s+2\s+4/.test($$('#screen section')[1].innerText)`)
	p.Eventually(`/allowed and [\d.]+ denied per second/.test(text('#screen'))`)
	s.Do("RL.TAKE", "api:ann", 1, 3_600_000)
	p.Eventually(`$$('#screen .chart .series').length === 2 && /allowed\s+denied/.test(text('#screen .legend'))`)
	p.Shot("S32-limits")
	p.Click(row("slow") + `.querySelector('td:not(.acts) button')`)
	p.Click(`$('dialog[open] td.acts button')`)
	p.Eventually(`$$('dialog[open]').length === 2 && text('dialog[open] pre.command').startsWith('RL.CANCEL slow ')`)
	p.Click(`$$('dialog[open]')[1].querySelector('button[type=submit]')`)
	p.Eventually(`text('dialog[open]').includes('No reservations')`)
	if v, _ := s.Do("RL.INFO", "slow").Get("reservations"); len(v.Elems) != 0 {
		t.Errorf("the limiter has %v", v)
	}
}

// acquire sends a request for a lock and returns a channel for its token.
func acquire(t *testing.T, s *browsertest.Server, ctx context.Context, key, owner string) <-chan int64 {
	t.Helper()
	got := make(chan int64, 1)
	go func() {
		defer close(got)
		if v, err := s.Conn.Block(ctx, "LOCK.ACQUIRE", key, owner, 600_000, "WAIT", 0); err == nil {
			got <- v.Int
		}
	}()
	return got
}

// line waits until a lock has n waiting calls.
func line(t *testing.T, s *browsertest.Server, key string, n int) {
	t.Helper()
	browsertest.Wait(t, fmt.Sprintf("%d calls wait", n), func() bool {
		v := s.Do("LOCK.INFO", key)
		waiting, _ := v.Get("line")
		return len(waiting.Elems) == n
	})
}

func TestTheLockOfADeadWorkerGoesToTheFirstInLine(t *testing.T) {
	s := browsertest.Serve(t)
	worker := client(t, s)
	send(t, worker, "LOCK.ACQUIRE report worker-1 600000")
	token := integer(t, worker)
	second := acquire(t, s, t.Context(), "report", "worker-2")
	line(t, s, "report", 1)
	third := acquire(t, s, t.Context(), "report", "worker-3")
	line(t, s, "report", 2)
	_ = worker.Close() // the worker dies, and the lock stays

	p := browsertest.Open(t, s.URL+"#/locks", browsertest.Options{})
	p.Eventually(row("report") + `?.innerText.includes('worker-1')`)
	p.Click(row("report") + `.querySelector('a')`)
	p.Eventually(row("worker-1") + ` && ` + row("worker-2") + ` && ` + row("worker-3"))
	// Another operator has the dialog open, with the same holder in it.
	q := p.Tab(s.URL + "#/locks?db=0&k=" + keyURL("report"))
	q.Click(within("worker-1", "Force release"))
	want := fmt.Sprintf("LOCK.RELEASE report worker-1 %d", token)
	q.Eventually(`text('dialog[open] pre.command') === ` + browsertest.Quote(want))

	p.Click(within("worker-1", "Force release"))
	if command := confirm(p); command != want {
		t.Errorf("the dialog shows %q, want %q", command, want)
	}
	granted := <-second
	if granted <= token {
		t.Errorf("the token of the first in line is %d; that of the dead worker was %d", granted, token)
	}
	p.Eventually(`$$('#screen section')[0].innerText.includes('worker-2') && !$$('#screen section')[1].innerText.includes('worker-2')`)
	select {
	case n := <-third:
		t.Fatalf("the second in line has the lock as well, with token %d", n)
	default:
	}

	confirm(q)
	q.Eventually(`byText('.toast.bad', 'has a new holder').length && $$('.toast').length === 1`)
	q.Eventually(`$$('#screen section')[0].innerText.includes('worker-2')`)
	s.Do("LOCK.RELEASE", "report", "worker-2", granted)
	if n := <-third; n <= granted {
		t.Errorf("the token of the last in line is %d", n)
	}
	q.Eventually(`$('.toast.bad')`)
	q.Screen("queues") // the message disappears with its screen
	q.Eventually(`!$('.toast')`)
}

func TestALockTellsHowLongItIsHeldAndWhichClientWaits(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("LOCK.ACQUIRE", "older", "worker-1", 600_000)
	s.Do("LOCK.ACQUIRE", "younger", "worker-3", 600_000)
	waiter := client(t, s)
	send(t, waiter, "LOCK.ACQUIRE older worker-2 600000 WAIT 0")
	line(t, s, "older", 1)
	p := browsertest.Open(t, s.URL+"#/locks", browsertest.Options{})
	p.Eventually(`$('#screen tbody tr')?.innerText.includes('older') && parseFloat($('#screen tbody tr .track .bar').style.width) > 50`)
	p.Shot("S31-locks")
	p.Click(row("older") + `.querySelector('a')`)
	p.Eventually(row("worker-1") + `?.querySelector('.track .bar')`)
	p.Click(row("worker-2") + `.querySelector('a')`)
	p.Eventually(`$$('#screen section').find((e) => text(e).startsWith('Clients'))?.querySelectorAll('tbody tr').length === 1`)
	p.Eventually(row(waiter.LocalAddr().String()))
}

// A phone shows the column that sorts the locks, and leads back to that order; for a holder it shows
// everything that a release needs.
func TestAPhoneShowsTheOrderOfTheLocksAndAllOfAHolder(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("LOCK.ACQUIRE", "zebra", "worker-1", 600_000)
	browsertest.Wait(t, "the lock is older than the next one", func() bool { return s.Do("PTTL", "zebra").Int < 599_980 })
	token := s.Do("LOCK.ACQUIRE", "ant", "worker-2", 600_000).Int
	p := browsertest.Open(t, s.URL+"#/locks", phone)
	head := func(name string) string {
		return `$$('#screen th').find((e) => seen(e) && e.innerText.startsWith(` + browsertest.Quote(name) + `))`
	}
	const first = `$('#screen tbody tr')?.innerText`
	p.Eventually(head("Held for") + `?.getAttribute('aria-sort') === 'descending' && ` + first + `.includes('zebra')`)
	p.Click(head("Name") + `.querySelector('button')`)
	cell := func(lock, label string) string { return row(lock) + `?.querySelector('[data-label="` + label + `"]')` }
	p.Eventually(first + `.includes('ant') && seen(` + cell("ant", "Held for") + `)`)
	p.Click(head("Held for") + `.querySelector('button')`)
	p.Eventually(first + `.includes('zebra')`)
	p.Click(row("ant") + `.querySelector('a')`)
	p.Eventually(fmt.Sprintf(`%s?.innerText === '%d' && seen(%s)`, cell("worker-2", "Token"), token, cell("worker-2", "Held for")))
	p.Shot("phone-lock")
}

// integer reads an integer reply.
func integer(t *testing.T, c net.Conn) int64 {
	t.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(line, ":")), 10, 64)
	if err != nil {
		t.Fatalf("the reply is %q", line)
	}
	return n
}

// pop takes the job that is due, and fails if there is none.
func pop(t *testing.T, s *browsertest.Server, key string) (id string, token int64) {
	t.Helper()
	v := s.Do("DQ.POP", key, "LEASE", 600_000)
	if v.Kind != resp.KindArray || len(v.Elems) != 1 {
		t.Fatalf("DQ.POP %s: %v", key, v)
	}
	return v.Elems[0].Elems[0].Str, v.Elems[0].Elems[3].Int
}

// Dead letters wait for an operator and not for a worker: they are not late. A phone shows the payload of a
// job.
func TestDeadLettersAreNotLateAndAPhoneShowsTheirPayloads(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.CONFIG", "{mail}", "MAXDELIVERIES", 1, "DEADLETTER", "{mail}:dead")
	s.Do("DQ.ADD", "{mail}", "bad", `{"to":"ann@bounce.example"}`)
	id, token := pop(t, s, "{mail}")
	s.Do("DQ.NACK", "{mail}", id, token)
	p := browsertest.Open(t, s.URL+"#/queues", browsertest.Options{})
	const dead = `$$('#screen tbody tr').find((r) => r.innerText.startsWith('{mail}:dead'))`
	p.Eventually(dead + `?.querySelector('.states .dead') && ` + dead + `.querySelector('[data-label="Late by"]').innerText === '–'`)
	p = browsertest.Open(t, s.URL+"#/queues?db=0&s=dead&k="+keyURL("{mail}"), browsertest.Options{Width: 390, Height: 844, Mobile: true})
	p.Eventually(`byText('#screen tbody tr', 'ann@bounce.example').length && byText('#screen td', 'ann@bounce.example').length`)
}

func TestADeadLetterGoesBackToItsQueueAndAConsumerTakesIt(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.CONFIG", "{mail}", "MAXDELIVERIES", 3, "DEADLETTER", "{mail}:dead")
	s.Do("DQ.ADD", "{mail}", "bad", `{"to":"ann@bounce.example"}`)
	s.Do("DQ.ADD", "{mail}", "later", "x", "DELAY", 3_600_000)
	for range 3 {
		id, token := pop(t, s, "{mail}")
		if s.Do("DQ.NACK", "{mail}", id, token).Int != 1 {
			t.Fatal("the job was not returned")
		}
	}
	p := browsertest.Open(t, s.URL+"#/queues", browsertest.Options{})
	p.Eventually(row("{mail}"))
	p.Click(row("{mail}") + `.querySelector('a')`)
	p.ClickText("Delayed 1")
	p.Eventually(row("later"))
	p.ClickText("Dead letters")
	p.Eventually(row("bad") + ` && text('#screen').includes('The queue stores no reason')`)
	p.Click(row("bad") + `.querySelector('td.wide')`)
	p.Eventually(`/^Deliveries\s+3\s+Failed\s+\d+ \w+ \d{4}/.test(text('dialog[open] .facts'))`)
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]')`)
	p.Click(within("bad", "Requeue"))
	if command := confirm(p); command != "DQ.MOVE {mail}:dead {mail} IDS 1 bad" {
		t.Errorf("the dialog shows %q", command)
	}
	p.Eventually(`!` + row("bad"))
	p.ClickText("Ready 1")
	p.Eventually(row("bad"))
	if id, _ := pop(t, s, "{mail}"); id != "bad" {
		t.Errorf("the consumer got %q", id)
	}
	p.ClickText("Leased 1")
	p.Eventually(row("bad"))
}

// The age of a dead letter grows while the page is open, and the column names it.
func TestTheAgeOfADeadLetterGrows(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.CONFIG", "{mail}", "MAXDELIVERIES", 3, "DEADLETTER", "{mail}:dead")
	s.Do("DQ.ADD", "{mail}:dead", "job", "x")
	p := browsertest.Open(t, s.URL+"#/queues?db=0&s=dead&k="+keyURL("{mail}"), browsertest.Options{})
	age := `(` + row("job") + `?.innerText.match(/([\d.]+) s ago/) || [])[1]`
	p.Eventually(age)
	was := p.Number(age)
	p.Eventually(fmt.Sprintf(`%s > %f`, age, was))
	if !strings.Contains(p.Text(`text('#screen thead')`), "Failed") {
		t.Error("the table says when the dead letter was due, not when it has failed")
	}
}

// A finger does not move before it taps.
func TestATapOnABarShowsItsFigures(t *testing.T) {
	s := browsertest.Serve(t)
	storm(t, s, "voucher", 100, time.Now().UnixMilli()+50_000)
	p := browsertest.Open(t, s.URL, browsertest.Options{Width: 390, Height: 844, Mobile: true})
	p.Screen("expiry")
	p.Eventually(`$('#screen .chart svg') && $('#screen .tip').hidden`)
	p.Eval(`(() => {
		const svg = $('#screen .chart svg'), r = svg.getBoundingClientRect();
		svg.dispatchEvent(new PointerEvent('pointerdown', { clientX: r.left + r.width / 2, clientY: r.top + r.height / 2, bubbles: true }));
	})()`)
	p.Eventually(`!$('#screen .tip').hidden`)
}

// A dead letter stays if the queue has another job with its ID, and the page says so.
func TestARequeueSaysWhyADeadLetterStays(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.CONFIG", "{mail}", "MAXDELIVERIES", 3, "DEADLETTER", "{mail}:dead")
	for _, id := range []string{"again", "gone", "third"} {
		s.Do("DQ.ADD", "{mail}:dead", id, "x")
	}
	s.Do("DQ.ADD", "{mail}", "again", "y", "DELAY", 3_600_000)
	p := browsertest.Open(t, s.URL+"#/queues?db=0&s=dead&k="+keyURL("{mail}"), browsertest.Options{})
	p.Click(within("again", "Requeue"))
	confirm(p)
	p.Eventually(`text('.toast.bad').startsWith('The queue already has a job with this ID: the dead letter stays.')`)
	p.Eval(`document.getElementById('toasts').replaceChildren()`)
	p.Click(within("gone", "Requeue"))
	p.Eventually(`$('dialog[open] pre.command')`)
	s.Do("DQ.CANCEL", "{mail}:dead", "gone")
	confirm(p)
	p.Eventually(`text('.toast.bad').startsWith('The job is no longer in this state.')`)
	p.Eval(`document.getElementById('toasts').replaceChildren()`)
	p.Eventually(`!` + row("gone"))
	p.Click(button("Requeue all"))
	confirm(p)
	p.Eventually(`!` + row("third") + ` && text('.toast.bad').startsWith('The queue already has a job with this ID')`)
	if v := s.Do("DQ.PEEK", "{mail}:dead"); !strings.Contains(v.String(), "again") {
		t.Errorf("the dead letters are %v", v)
	}
}

func TestALongPayloadIsShownInPart(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("DQ.ADD", "big", "one", strings.Repeat("payload ", 5<<20/8))
	p := browsertest.Open(t, s.URL+"#/queues?db=0&k="+keyURL("big"), browsertest.Options{})
	p.Eventually(row("one") + `?.innerText.includes('payload') && ` + row("one") + `.innerText.includes('5,242,880')`)
	p.Wait("the jobs are loaded", func() bool {
		for _, h := range p.Hits() {
			if strings.Contains(h.URL, "/api/queue?") && h.Bytes > 0 {
				return true
			}
		}
		return false
	})
	for _, h := range p.Hits() {
		if h.Bytes > 100_000 {
			t.Errorf("%s has %d bytes; a preview has 64 KiB", h.URL, h.Bytes)
		}
	}
}
