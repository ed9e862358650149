package browsertest_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
	"github.com/ebbdb/ebb/internal/demo"
)

// cards reports the missing cards of a screen, by their headings.
func cards(p *browsertest.Page, titles ...string) {
	for _, title := range titles {
		p.Eventually(`byText('#screen h2', ` + browsertest.Quote(title) + `).length`)
	}
}

// see takes a screenshot that begins at a card.
func see(p *browsertest.Page, title, name string) {
	p.Eval(`(() => { const c = byText('#screen h2', ` + browsertest.Quote(title) + `)[0]; c.closest('section').scrollIntoView({ block: 'start' }); })()`)
	p.Shot(name)
}

// inline sends commands as a client of its own, and reads the line of each reply.
func inline(t *testing.T, addr string, commands ...string) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	replies := bufio.NewScanner(c)
	for _, line := range commands {
		if _, err := fmt.Fprintf(c, "%s\r\n", line); err != nil || !replies.Scan() {
			t.Fatal(line, err, replies.Err())
		}
	}
}

func TestTheServerScreenTellsWhatTheServerDoes(t *testing.T) {
	s := browsertest.Serve(t, "--timeout", "300", "--dir", t.TempDir(), "--appendonly", "yes", "--io-threads-do-reads", "yes")
	replica := browsertest.Serve(t, "--replicaof", fmt.Sprintf("127.0.0.1 %s", s.Addr[len("127.0.0.1:"):]))
	browsertest.Wait(t, "the replica follows", func() bool {
		v := replica.Do("ROLE")
		return len(v.Elems) > 3 && v.Elems[3].Str == "connected"
	})
	s.Do("ACL", "SETUSER", "support", "on", ">looking", "-@all", "+@read", "+set", "~shop:*", "%R~log:*", "&news:*")
	s.Do("ACL", "SETUSER", "<b>x</b>", "off")
	p := browsertest.Open(t, s.URL, browsertest.Options{Dark: true})
	p.Screen("server")
	cards(p, "Replication", "Files", "Configuration", "Users", "Refused requests", "Audit of the console")
	p.Eventually(`text('#screen .flow').includes('up to date') && /acknowledged offset [\d,]+/.test(text('#screen .flow'))`)
	p.Eventually(`/acknowledged all \(WAIT\)\s+1 \/ 1/.test(text('#screen'))`)
	p.Eventually(row("timeout"))
	p.Eventually(`text('#screen .users').includes('all read commands, SET.')`)
	p.Eventually(`byText('#screen .user-row', '<b>x</b>').length && !$('#screen .user-row b b')`)
	p.Click(`byText('#screen tr', 'timeout')[0].querySelector('button:not(.head)')`)
	p.Fill(`$('dialog[open] input[name=value]')`, "60")
	p.Eventually(`text('dialog[open] pre') === 'CONFIG SET timeout 60'`)
	p.Allow(`^status 409: `) // CONFIG SET is dangerous: the viewer types its name
	p.Click(`$('dialog[open] button[type=submit]')`)
	p.Eventually(`text('dialog[open] strong') === 'CONFIG SET'`)
	p.Fill(`$('dialog[open] input')`, "CONFIG SET")
	confirm(p)
	p.Wait("the timeout", func() bool { return s.Do("CONFIG", "GET", "timeout").Elems[1].Str == "60" })
	p.Eventually(`byText('#screen td', 'CONFIG SET timeout 60').length`)
	p.Shot("S20-server")
	see(p, "Users", "S20-users")
	p.Click(`byText('#screen .segments button', 'All ')[0]`)
	p.Eventually(row("zset-max-listpack-entries"))

	inline(t, replica.Addr, "AUTH support wrong", "AUTH <i> wrong")
	q := browsertest.Open(t, replica.URL, browsertest.Options{Width: 390, Height: 844, Mobile: true, Lang: "zh-CN"})
	q.Screen("server")
	q.Eventually(`text('#screen .flow').includes('已连接')`)
	q.Shot("S20-replica-phone-zh")
	q.Eventually(`byText('#screen td', '密码错误或用户不存在').length === 2 && byText('#screen td', '<i>').length`)
	see(q, "用户", "S20-users-phone-zh")
	see(q, "配置", "S20-config-phone-zh")

	// The descriptions, the reasons and the valid values of directives are in Chinese too, and Find knows both
	// languages.
	q = browsertest.Open(t, s.URL, browsertest.Options{Lang: "zh-CN"})
	q.Screen("server")
	find := `$('input[type=search][placeholder="查找指令"]')`
	for word, meaning := range map[string]string{"等待接受": "tcp-backlog", "connections that wait": "等待接受的连接数", "rdb-del-sync": "同步之后从不留下文件"} {
		q.Eventually(find)
		q.Fill(find, word)
		q.Eventually(row(meaning))
	}
	q.Fill(find, "timeout")
	q.Eventually(row("（命令行）"))
	q.Click(within("客户端空闲多少秒后关闭", "更改"))
	q.Eventually(`text('dialog[open]').includes('0 到 2147483647 的整数')`)
	q.Shot("S20-config-zh")
}

func TestThePerformanceScreenTellsWhatTakesTheTime(t *testing.T) {
	s := browsertest.Serve(t, "--latency-monitor-threshold", "1")
	if err := demo.Fill(t.Context(), s.Conn, demo.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	s.Do("SET", "<b>big</b>", strings.Repeat("x", 3<<20))
	s.Do("EVAL", "local n = 0 for i = 1, 3e6 do n = n + i end return n", 0)
	s.Do("EVAL", "return '<img src=x onerror=alert(1)>'", 0)
	s.Do("FUNCTION", "LOAD", "#!lua name=shop\nredis.register_function{function_name='total', callback=function() return 1 end, flags={'no-writes'}, "+
		"description='the sum of a cart'}")
	p := browsertest.Open(t, s.URL, browsertest.Options{Dark: true})
	p.Screen("performance")
	cards(p, "Commands", "Slow calls", "Memory by prefix", "Latency events", "Scripts and functions", "Errors by code")
	p.Eventually(`byText('#screen .treemap .part', 'EVAL').length`)
	p.Eventually(row("the sum of a cart"))
	p.Eventually(row("onerror=alert(1)"))
	p.Eventually(`byText('#screen h3', 'Commands').length`)
	p.Shot("S21-performance")
	p.Click(button("Scan all keys"))
	p.Eventually(`byText('#screen h2', 'Biggest keys').filter(seen).length`)
	p.Eventually(row("<b>big</b>"))
	see(p, "Memory by prefix", "S21-memory")
	see(p, "Biggest keys", "S21-big")
	see(p, "Latency events", "S21-latency")
	p.Screen("now")
	p.Screen("performance")
	p.Eventually(row("<b>big</b>")) // the result of the walk stays
	q := browsertest.Open(t, s.URL, browsertest.Options{Width: 390, Height: 844, Mobile: true, Lang: "zh-CN"})
	q.Screen("performance")
	q.Eventually(`byText('#screen .treemap .part', 'EVAL').length`)
	q.Shot("S21-performance-phone-zh")
	see(q, "延迟事件", "S21-latency-phone-zh")
}

func TestAGroupOfAStreamIsHelpedOn(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 6 {
		s.Do("XADD", "orders", fmt.Sprintf("%d-1", i+1), "id", i)
	}
	s.Do("XGROUP", "CREATE", "orders", "mail", 0)
	s.Do("XREADGROUP", "GROUP", "mail", "<i>dead</i>", "COUNT", 3, "STREAMS", "orders", ">")
	s.Do("XREADGROUP", "GROUP", "mail", "alive", "COUNT", 1, "STREAMS", "orders", ">")
	pending := func(want string) {
		p := s.Do("XPENDING", "orders", "mail")
		got := fmt.Sprint(p.Elems[0].Int)
		for _, c := range p.Elems[3].Elems {
			got += " " + c.Elems[0].Str + ":" + c.Elems[1].Str
		}
		if got != want {
			t.Errorf("pending are %s, want %s", got, want)
		}
	}
	p := browsertest.Open(t, s.URL, browsertest.Options{Dark: true})
	p.Screen("streams")
	p.Eventually(`byText('#screen th', 'First pending for').length`)
	p.Click(`byText('#screen td a', 'orders')[0]`)
	p.Eventually(row("<i>dead</i>"))
	p.Eventually(row("3-1"))
	p.Shot("S23-stream")
	choose := func(id string) {
		p.Click(`byText('#screen tr', ` + browsertest.Quote(id) + `)[0].querySelector('input')`)
	}
	choose("1-1")
	p.Click(button("Acknowledge"))
	if got := confirm(p); got != "XACK orders mail 1-1" {
		t.Errorf("the command is %s", got)
	}
	p.Eventually(`!(` + row("1-1") + `)`)
	pending("3 <i>dead</i>:2 alive:1")
	choose("2-1")
	choose("3-1")
	p.Click(button("Claim"))
	p.Fill(`$('dialog[open] input[name=to]')`, "alive")
	if got := confirm(p); got != "XCLAIM orders mail alive 0 2-1 3-1 JUSTID" {
		t.Errorf("the command is %s", got)
	}
	p.Eventually(`byText('#screen td', 'alive').length === 4`)
	pending("3 alive:3")
	p.Click(`byText('#screen tr', '<i>dead</i>')[0].querySelector('button')`)
	if got := confirm(p); got != "XGROUP DELCONSUMER orders mail <i>dead</i>" {
		t.Errorf("the command is %s", got)
	}
	p.Eventually(`!(` + row("<i>dead</i>") + `)`)
	p.Click(button("Trim"))
	p.Fill(`$('dialog[open] input[name=n]')`, "2")
	p.Shot("S23-trim")
	if got := confirm(p); got != "XTRIM orders MAXLEN 2" {
		t.Errorf("the command is %s", got)
	}
	p.Eventually(`byText('#screen .badge', '2 entries').length`)

	// Entries of a range, and the next page of many.
	for i := range 300 {
		s.Do("XADD", "orders", fmt.Sprintf("%d-1", 100+i), "id", i)
	}
	p.Screen("key?db=0&k=" + keyURL("orders"))
	p.Eventually(row("399-1"))
	p.Click(button("Next"))
	p.Eventually(row("101-1") + ` && !(` + row("399-1") + `)`)
	p.Fill(`$('#screen input[type=search]')`, "150 .. 151")
	p.Press(kb.Enter)
	p.Eventually(row("150-1") + ` && ` + row("151-1") + ` && !(` + row("152-1") + `) && !(` + row("101-1") + `)`)
	s.Do("XADD", "orders", "900-1", "id", "new") // the page follows, and the field keeps its text
	p.Eventually(`/Items\s+303/.test(text('#screen .facts')) && $('#screen input[type=search]').value === '150 .. 151' && ` + row("150-1"))
	p.Eventually(`document.activeElement === $('#screen input[type=search]')`)
}

// A lag that Now warns of stands out among the streams, and on the page of its stream.
func TestALagOfWhichNowWarnsStandsOut(t *testing.T) {
	s := browsertest.Serve(t)
	for i := range 120 {
		s.Do("XADD", "orders", "*", "id", i)
	}
	s.Do("XGROUP", "CREATE", "orders", "slow", 0)
	s.Do("XGROUP", "CREATE", "orders", "quick", "$")
	p := browsertest.Open(t, s.URL+"#/streams", browsertest.Options{})
	p.Eventually(row("slow") + `?.querySelector('.badge.look')?.innerText === '120' && !` + row("quick") + `.querySelector('.look')`)
	p.Shot("streams-lag")
	p.Click(row("slow") + `.querySelector('a')`)
	const facts = `byText('#screen p', '120 entries not delivered yet')`
	p.ClickText("slow")
	p.Eventually(facts + `[0]?.classList.contains('look')`)
}

// The command that starts a replica has the port of the server, and a different port for the replica.
func TestTheServerScreenTellsHowToStartAReplica(t *testing.T) {
	s := browsertest.Serve(t)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("server")
	_, port, _ := strings.Cut(s.Addr, ":")
	n, _ := strconv.Atoi(port)
	want := fmt.Sprintf(`ebb serve --port %d --replicaof "127.0.0.1 %d"`, n+1, n)
	if n == 65535 {
		want = `ebb serve --port 65534 --replicaof "127.0.0.1 65535"`
	}
	p.Eventually(`text('#screen .note .command') === ` + browsertest.Quote(want))
	p.Eventually(`seen($('#screen .note button.copy'))`)
}

// A check consumes nothing, even by the keyboard. Taking requests is a separate step, and its answer is shown
// in words.
func TestALimiterIsAskedWhatItWouldAnswer(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("RL.TAKE", "api:ann", 5, 3_600_000, "COST", 2)
	p := browsertest.Open(t, s.URL, browsertest.Options{Dark: true})
	p.Screen("limits")
	p.Click(button("What if"))
	const number = `$('dialog[open] input')`
	says := func(want string) {
		t.Helper()
		p.Eventually(`text('dialog[open] [role=status]').startsWith(` + browsertest.Quote(want) + `)`)
	}
	p.Fill(number, "3")
	p.Press(kb.Enter)
	says("Allowed: 0 of 5 would remain.")
	p.Fill(number, "4")
	p.Click(`byText('dialog[open] button', 'Check')[0]`)
	says("Denied. Allowed in 11 min")
	p.Shot("S24-what-if")
	p.Fill(number, "6")
	p.Press(kb.Enter)
	says("Never allowed: the limiter allows 5 at once.")
	if left, _ := s.Do("RL.INFO", "api:ann").Get("remaining"); left.Int != 3 {
		t.Errorf("after checks %d of 3 requests remain", left.Int)
	}
	if got := p.Text(`text('dialog[open] pre.command')`); got != "RL.TAKE api:ann 5 3600000 BURST 5 COST 6 ALGO gcra PEEK" {
		t.Errorf("the command is %s", got)
	}
	takes := func(label, command string) {
		t.Helper()
		p.Click(`byText('dialog[open] button', ` + browsertest.Quote(label) + `)[0]`)
		p.Eventually(`$$('dialog[open]').length === 2 && text($$('dialog[open] pre.command')[1]) === ` + browsertest.Quote(command))
		p.Click(`$$('dialog[open]')[1].querySelector('button[type=submit]')`)
		p.Eventually(`$$('dialog[open]').length === 1`)
	}
	p.Fill(number, "4")
	takes("Take 4 requests now", "RL.TAKE api:ann 5 3600000 BURST 5 COST 4 ALGO gcra")
	p.Eventually(`/^Denied\. Allowed in .* No request was taken\.$/.test(text('dialog[open] [role=status]'))`)
	p.Shot("what-if-denied")
	p.Fill(number, "1")
	takes("Take one request now", "RL.TAKE api:ann 5 3600000 BURST 5 COST 1 ALGO gcra")
	says("Allowed: one request was taken. 2 of 5 remain.")
	if p.Eval(`!!$('.toast')`) == true {
		t.Errorf("a message says %q beside", p.Text(`text('.toast')`))
	}
	p.Press(kb.Escape)
	p.Eventually(`!$('dialog[open]') && byText('#screen td', '2 / 5').length`)
}

// The slow log hides the console's own calls, shows their number, and marks those that it shows.
func TestTheSlowLogMarksTheConsolesCalls(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "k", "v")
	s.Do("CONFIG", "SET", "slowlog-log-slower-than", 0)
	p := browsertest.Open(t, s.URL, browsertest.Options{})
	p.Screen("key?db=0&k=" + keyURL("k"))
	s.Do("GET", "k")
	s.Do("CONFIG", "SET", "slowlog-log-slower-than", 10_000_000)
	p.Screen("performance")
	const own = `$$('#screen label').find((e) => seen(e) && /^Hide the console's own calls: [1-9]/.test(e.innerText))`
	p.Eventually(own + ` && ` + row("GET k") + ` && !` + row("PTTL k"))
	p.Click(own + `.querySelector('input')`)
	const badges = `[...($$('#screen tbody tr').find((r) => seen(r) && r.innerText.includes(WHAT))?.querySelectorAll('.badge') || [])]` +
		`.map((e) => e.innerText).join()`
	p.Eventually(strings.Replace(badges, "WHAT", `'PTTL k'`, 1) + ` === 'console'`)
	p.Eventually(strings.Replace(badges, "WHAT", `'GET k'`, 1) + ` === ''`)
	p.Eval(`byText('#screen h2', 'Slow').forEach((e) => e.scrollIntoView())`)
	p.Shot("S24-slowlog")
}

func TestButtonsFollowTheRoleOfTheServer(t *testing.T) {
	s := browsertest.Serve(t)
	s.Do("SET", "k", "v")
	p := browsertest.Open(t, s.URL+"#/key?k="+keyURL("k"), browsertest.Options{})
	p.Eventually(button("Delete") + `?.disabled === false`)
	s.Do("REPLICAOF", "127.0.0.1", "1")
	p.Eventually(button("Delete") + `?.disabled === true`)
	s.Do("REPLICAOF", "NO", "ONE")
	p.Eventually(button("Delete") + `?.disabled === false`)
}
