package browsertest_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/console/browsertest"
	"github.com/ebbdb/ebb/internal/demo"
)

// busy is a server with the demo at work, four times as fast as usual, and some further load.
func busy(t *testing.T, args ...string) *browsertest.Server {
	t.Helper()
	s := browsertest.Serve(t, append([]string{"--http-console-label", "production #c0392b", "--slowlog-log-slower-than", "200"}, args...)...)
	shop := demo.Options{Seed: 1, Speed: 4}
	if err := demo.Fill(t.Context(), s.Conn, shop); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = demo.Run(ctx, s.Conn, shop) }) // the error is that of the context
	work.Go(func() { load(ctx, s.Conn) })
	t.Cleanup(func() { // before the server ends
		cancel()
		work.Wait()
	})
	return s
}

// load sends some 4,000 commands a second, of several kinds.
func load(ctx context.Context, c *conn.Conn) {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var b conn.Batch
		for j := range 100 {
			k := fmt.Sprintf("product:%04d", (i*37+j)%2000)
			switch {
			case j%10 == 0:
				b.Do("SET", k, "a product of the shop", "EX", 3600+(i*37+j)%20_000)
			case j%25 == 1:
				b.Do("INCR", "views:"+k[8:])
			default:
				b.Do("GET", k)
			}
		}
		if _, err := c.Pipeline(ctx, &b); err != nil {
			return
		}
	}
}

// points is the number of samples that a chart of Now must have: a minute of them for screenshots that are kept.
func points() int {
	if os.Getenv(browsertest.ShotEnv) != "" {
		return 60
	}
	return 3
}

// The screenshots S1 to S19 of the console with real content. Without EBB_SCREENSHOTS the test takes none,
// and still visits all screens while the data changes.
func TestScreensWithDataThatMoves(t *testing.T) {
	s := busy(t)
	storm := func(ahead time.Duration) { storm(t, s, "voucher", 5000, time.Now().Add(ahead).UnixMilli()) }
	dark, phone := browsertest.Options{Dark: true}, browsertest.Options{Width: 390, Height: 844, Mobile: true, Dark: true}

	p := browsertest.Open(t, s.URL, dark)
	p.Screen("now")
	p.Within(5*time.Minute, fmt.Sprintf(`($('#screen .series')?.getAttribute('d') || '').split('L').length >= %d`, points()))
	now := func(name string, o browsertest.Options) {
		storm(40 * time.Second)
		q := browsertest.Open(t, s.URL, o)
		q.Allow(`^status 401: `) // at the end its user needs a password
		q.Screen("now")
		q.Eventually(`$('#screen .chart .storm')`)
		q.Shot(name)
	}
	now("S01-now-spike-ahead", dark)
	now("S16-now-light", browsertest.Options{})
	now("S17-now-zh", browsertest.Options{Lang: "zh-CN", Dark: true})
	now("S18-now-phone", phone)

	p.Screen("expiry?span=hour")
	p.Eventually(`$$('#screen .chart rect.s-key').length > 1`)
	s.Do("EXPIRY", "RULE", "SET", "sessions", "MATCH", "session:*", "TO", "ended")
	for i := range 5 {
		s.Do("SET", fmt.Sprintf("session:short%d", i), "x", "PX", 10)
	}
	p.Eventually(`byText('#screen td', 'session:short').length || byText('#screen section', 'unpaid').length`)
	p.Shot("S02-expiry-hour")
	p.Click(button("Scan all keys"))
	p.Eventually(`text('#screen [role=status]').includes('100%') && $('.heat td.cell')`)
	p.Eval(`$('.heat').scrollIntoView({ block: 'center' })`)
	p.Shot("S03-heat-map")

	p.Screen("keys?view=tree")
	p.Click(button("Scan all keys"))
	p.Eventually(`$('#screen [role=status]').textContent.includes('All keys were scanned')`)
	p.Shot("S04-keys-tree")
	hash := `key?db=0&k=` + keyURL("cart:ann")
	for i := range 12 {
		s.Do("HSET", "cart:ann", fmt.Sprintf("item-%03d", i), i%3+1)
		if i%4 != 0 {
			s.Do("HPEXPIRE", "cart:ann", 5_000*(i+8), "FIELDS", 1, fmt.Sprintf("item-%03d", i))
		}
	}
	p.Screen(hash)
	p.Eventually(`$$('#screen tbody tr').length >= 12`)
	p.Shot("S05-hash")
	for _, h := range hostile {
		s.Do("SET", h.raw, h.raw, "EX", 5000)
	}
	p.Screen("keys?ttl=any&type=string&match=*[^0-9a-z]")
	p.Eventually(`$$('#screen tbody tr').length > 5`)
	p.Shot("S06-hostile-keys")

	p.Screen("limits")
	p.Eventually(`$$('#screen section')[0].innerText.includes('mallory')`)
	p.Shot("S07-limits")

	s.Do("LOCK.ACQUIRE", "nightly-report", "worker-1", 30_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 3 {
		acquire(t, s, ctx, "nightly-report", fmt.Sprintf("worker-%d", i+2))
		line(t, s, "nightly-report", i+1)
	}
	lock := "locks?db=0&k=" + keyURL("nightly-report")
	p.Screen(lock)
	p.Eventually(row("worker-4"))
	p.Shot("S08-lock-line")
	p.Screen("locks")
	p.Eventually(row("nightly-report"))
	p.Shot("S08-locks")

	s.Do("DQ.CONFIG", "{invoice}", "MAXDELIVERIES", 1, "DEADLETTER", "{invoice}:dead")
	for i := range 12 {
		s.Do("DQ.ADD", "{invoice}", fmt.Sprintf("invoice-%04d", 4711+i), fmt.Sprintf(`{"order":%d,"to":"ann@shop.example"}`, 990+i))
		id, token := pop(t, s, "{invoice}")
		s.Do("DQ.NACK", "{invoice}", id, token)
		s.Do("DQ.ADD", "{invoice}", fmt.Sprintf("later-%d", i), "x", "DELAY", 60_000*i+30_000)
	}
	p.Screen("queues")
	p.Eventually(row("{invoice}"))
	p.Shot("S09-queues")
	p.Screen("queues?db=0&k=" + keyURL("{invoice}") + "&s=dead")
	p.Eventually(row("invoice-4711"))
	p.Shot("S09-dead-letters")

	p.Screen("performance")
	p.Eventually(row("GET"))
	p.Shot("S10-performance")
	replica := browsertest.Serve(t, "--replicaof", fmt.Sprintf("127.0.0.1 %s", s.Addr[len("127.0.0.1:"):]))
	browsertest.Wait(t, "the replica follows", func() bool {
		v := replica.Do("ROLE")
		return len(v.Elems) > 3 && v.Elems[3].Str == "connected"
	})
	p.Screen("server")
	p.Eventually(`/Replicas\s+1/.test(text('#screen'))`)
	p.Shot("S11-server")
	p.Screen("shell")
	for _, line := range []string{"HGETALL cart:bob", "SET greeting hello EX 60", "EXPIRY NEXT", "LOCK.INFO nightly-report", "GET cart:ann"} {
		p.Fill(`$('#screen form input')`, line)
		p.Click(button("Run"))
		p.Eventually(`byText('#screen [role=log] b', ` + browsertest.Quote(line) + `).length`)
	}
	p.Fill(`$('#screen form input')`, "HPEXPIRE cart:ann")
	p.Shot("S12-shell")

	// The phone.
	q := browsertest.Open(t, s.URL, phone)
	q.Screen(hash)
	q.Eventually(`$$('#screen tbody tr').length >= 5`)
	q.Shot("S18-hash-phone")
	q.Screen(lock)
	q.Eventually(row("worker-4"))
	q.Shot("S18-lock-phone")

	// A read-only user. All others need a password from now on.
	p.Allow(`^status 401: `)
	q.Allow(`^status 401: `)
	s.Do("ACL", "SETUSER", "support", "on", ">looking", "-@all", "+@read", "~cart:*", "~session:*", "~{invoice}*", "~nightly-report")
	s.Do("ACL", "SETUSER", "default", ">secret")
	q = browsertest.Open(t, s.URL, dark)
	q.Allow(`^status 401: `)
	q.Eventually(`$('form.login')`)
	q.Fill(`$('input[name=user]')`, "support")
	q.Fill(`$('input[name=password]')`, "wrong")
	q.Click(`$('form.login button[type=submit]')`)
	q.Eventually(`$('form.login [role=alert]').innerText`)
	q.Shot("S13-login")
	login(q, "support", "looking")
	q.Screen("queues?db=0&k=" + keyURL("{invoice}"))
	q.Shot("S19-read-only-queue")
	q.Screen("keys")
	q.Eventually(`$$('#screen tbody tr').length >= 5`)
	q.Shot("S19-read-only-keys")
}

func TestScreensWithoutAServerAndWithoutData(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{Dark: true})
	p.Screen("now")
	p.Eventually(`byText('#screen h2', 'The server has no keys yet').length`)
	p.Shot("S15-empty")
	p.Screen("queues")
	p.Shot("S15-empty-queues")
	s.Do("SET", "k", "v")
	p.Screen("now")
	p.Eventually(`$$('#screen .tile b')[0].innerText === '1'`)
	p.Allow(`^failed: .* net::ERR_`)
	p.Allow(`^status 503: `)
	s.Stop()
	p.Eventually(`$('.stale') && $('#banner').innerText.includes('No updates for')`)
	p.Shot("S14-lost")
}
