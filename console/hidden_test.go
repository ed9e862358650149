package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// blindLines has a request of each of blindCommands, on keys whose values are hidden: see secretBench.
const blindLines = `COPY s c|EXISTS s|EXPIRE s 900|EXPIREAT s 4000000000|PEXPIRE s 900000|PEXPIREAT s 4000000000000|TTL s|PTTL s
EXPIRETIME s|PEXPIRETIME s|PERSIST s|EXPIREMEMBER h f 900|EXPIREMEMBERAT h f 4000000000|PEXPIREMEMBERAT h f 4000000000000|FIELDTTL h f
FIELDEXPIRE h 900 f|OBJECT ENCODING s|OBJECT FREQ s|OBJECT IDLETIME s|OBJECT REFCOUNT s|MEMORY USAGE s|RENAME c d|RENAMENX d e|MOVE e 1
RESTORE r 0 x|TOUCH s|TYPE s|APPEND s x|GET s|GETEX s|GETRANGE s 0 2|SUBSTR s 0 2|MGET s a|STRLEN s|SETRANGE s 1 y|COPY s t|GETSET t z
GETDEL t|SETNX s v|SETEX u 900 v|PSETEX u 90000 v|MSET u v w v|MSETNX u v n v|MSETEX 1 u v NX|SET s v NX GET|SET u v XX|GETFRESH s|STALE s
UNLEASE s 1|UNLINK u|DEL w|HEXISTS h f|HEXPIRE h 900 FIELDS 1 f|HPEXPIRE h 900000 FIELDS 1 f|HEXPIREAT h 4000000000 FIELDS 1 f
HPEXPIREAT h 4000000000000 FIELDS 1 f|HTTL h FIELDS 1 f|HPTTL h FIELDS 1 f|HEXPIRETIME h FIELDS 1 f|HPEXPIRETIME h FIELDS 1 f
HPERSIST h FIELDS 1 f|HGET h f|HMGET h f g|HGETALL h|HKEYS h|HVALS h|HLEN h|HSTRLEN h f|HRANDFIELD h 1 WITHVALUES|HSCAN h 0|HSETNX h f v
HGETEX h FIELDS 1 f|HSETEX h FNX FIELDS 1 f v|HSET h g v|HMSET h g v|HDEL h g|HGETDEL h FIELDS 1 f|LLEN l|LINDEX l 0|LRANGE l 0 -1
LPEXPIRE l 900000 INDEXES 1 0|LEXPIRE l 900 INDEXES 1 0|LEXPIREAT l 4000000000 INDEXES 1 0|LPEXPIREAT l 4000000000000 INDEXES 1 0
LTTL l INDEXES 1 0|LPTTL l INDEXES 1 0|LEXPIRETIME l INDEXES 1 0|LPEXPIRETIME l INDEXES 1 0|LPERSIST l INDEXES 1 0|LPUSH l v|LPUSHX l v
RPUSH l v|RPUSHX l v|LPUSHEX l EX 900 ELEMENTS 1 v|RPUSHEX l EX 900 ELEMENTS 1 v|LSET l -1 w|LMOVE l m RIGHT LEFT|LMOVE l m LEFT LEFT
RPOPLPUSH l m|BRPOPLPUSH l m 1|BLMOVE l m LEFT RIGHT 1|LMOVEM l m LEFT RIGHT COUNT 1 BULK|BLMOVEM l m LEFT RIGHT 1 COUNT 1 BULK|LPOP m
RPOP m|BLPOP m 1|BRPOP m 1|LMPOP 1 l LEFT|BLMPOP 1 1 l RIGHT|LTRIM l 0 0|XLEN x|XRANGE x - +|XREVRANGE x + -|XREAD STREAMS x 0
XREADGROUP GROUP g c STREAMS x >|XPENDING x g|XCLAIM x g d 0 1-1|XAUTOCLAIM x g c 0 0|XINFO STREAM x FULL|XINFO GROUPS x
XINFO CONSUMERS x g|XACK x g 1-1|XACKDEL x g IDS 1 1-1|XADD x 2-1 f v|XDELEX x IDS 1 2-1|XDEL x 2-1|XSETID x 9-9|XGROUP CREATE x k 0
XGROUP CREATECONSUMER x k c|XGROUP DELCONSUMER x k c|XGROUP SETID x k 0|XGROUP DESTROY x k|XTRIM x MAXLEN 1|DQ.ADD q i v|DQ.PEEK q COUNT 9
DQ.GET q j|DQ.INFO q|DQ.MOVE q p IDS 1 i|DQ.CONFIG q MAXLEN 90|DQ.SCHEDULE q n v EVERY 900000|DQ.SCHEDULES q|DQ.UNSCHEDULE q n
DQ.POP q LEASE 90000|DQ.EXTEND q j 1 90000|DQ.NACK q j 1|DQ.ACK q j 1|DQ.CANCEL q j|EXPIRY RULE SET r MATCH a* TO z WITHVALUE`

// secretBench returns a console with hidden values, whose keys have a secret.
func secretBench(t *testing.T, secret string) *bench {
	b := newBench(t, Options{HideValues: true})
	for _, line := range []string{"SET s", "HSET h f", "RPUSH l a b", "RPUSH l", "XADD x 1-1 f", "DQ.ADD q j", "RPUSH el"} {
		if err := b.admin(append(strings.Fields(line), secret)...).Err(); err != nil {
			t.Fatal(line, err)
		}
	}
	b.admin("XGROUP", "CREATE", "x", "g", "0")
	b.admin("LPEXPIRE", "el", "900000", "INDEXES", "1", "0")
	return b
}

// TestNoAnswerDependsOnAHiddenValue runs each command that a console with hidden values lets through on two servers whose values differ.
func TestNoAnswerDependsOnAHiddenValue(t *testing.T) {
	one, other := secretBench(t, "sesame"), secretBench(t, "Q.!wyz")
	ran := map[string]bool{}
	for line := range strings.FieldsFuncSeq(blindLines, func(r rune) bool { return r == '|' || r == '\n' }) {
		status, body := one.do(line)
		if status != http.StatusOK || strings.Contains(body, "wrong number of arg") || strings.Contains(body, "syntax") {
			t.Errorf("%s: %d %s", line, status, body)
			continue
		}
		if _, got := other.do(line); got != body || strings.Contains(body, "ses") {
			t.Errorf("%s: %s, and for another value: %s", line, body, got)
		}
		ran[one.specOf(argv(line)).Name] = true
	}
	for _, path := range []string{"api/soon", "api/queue?state=all&k=" + url("q"), "api/stream?k=" + url("x")} {
		_, body := one.ask("GET", path, "")
		if _, got := other.ask("GET", path, ""); got != body {
			t.Errorf("%s: %s, and for another value: %s", path, body, got)
		}
	}
	for _, name := range blindCommands {
		if one.svc.Table().LookupFull(name) == nil || !ran[name] {
			t.Errorf("blindLines has no request of %s", name)
		}
	}
}

func TestWhatDependsOnAHiddenValueIsRefused(t *testing.T) {
	b := secretBench(t, "sesame")
	refused := func(line string) {
		t.Helper()
		if status, body := b.do(line); status != http.StatusForbidden || !strings.Contains(body, "HIDDEN") {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
	for _, line := range []string{
		"SET s x IFEQ sesame", "SET s x KEEPTTL ifne sesame", "SET s x IFDEQ 0", "SET s x IFDNE 0", "DELEX s IFEQ sesame",
		"BITOP AND d s m", "INCRBY s 1", "LPOS l sesame", "LREM l 0 sesame", "LINSERT l BEFORE sesame x",
		"SORT k BY nosort GET * STORE d", "SORT_RO l ALPHA", "DUMP s", "MIGRATE 127.0.0.1 1 s 0 10", "DIGEST s",
		"DEBUG DIGEST-VALUE s", "DQ.ADD q * sesame UNIQUE 9000", "EXPIRY RULE SET r MATCH * LEVEL ELEMENT TO QUEUE q",
		"EVAL return{ok=redis.call('get','s')} 0", "EVAL_RO return(1) 0", "FCALL f 0", "PFCOUNT s",
	} {
		refused(line)
	}
	known := 0
	for id := range b.svc.Table().Len() {
		s := b.svc.Table().Spec(id)
		if s.Run == nil || !s.HasKeys() || slices.Contains(groupsOfNames, s.Group) || slices.Contains(blindCommands, s.Name) {
			continue
		}
		for line := range strings.Lines(s.Examples) {
			line, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
			if spec := b.specOf(argv(line)); ok && spec == s && s.Client == 0 {
				known++
				refused(line)
			}
		}
	}
	if known < 20 {
		t.Errorf("%d examples of commands that are refused", known)
	}
}

// A mark belongs to a state of its key: a guess in the place of a value has another one, even if it is right.
func TestAMarkTellsNothingOfAHiddenValue(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("HSET", "h", "f", "same", "g", "same")
	b.admin("RPUSH", "l", "same", "same")
	if b.seen("h", "t:f") == b.seen("h", "t:g") || b.seen("l", "i:0") == b.seen("l", "i:1") {
		t.Error("equal values have equal marks")
	}
	before := b.seen("l", "i:0")
	if before == "" || b.seen("l", "i:0") != before {
		t.Error("the mark of a value that stays has changed")
	}
	b.admin("LSET", "l", "0", "same")
	if b.seen("l", "i:0") == before {
		t.Error("a guess has the mark of the value")
	}
	status, body := b.ifSeen("LINDEX l 0", b.seen("l", "i:0"), "LPEXPIRE l 5000 INDEXES 1 0")
	if status != 200 || b.admin("LPTTL", "l", "INDEXES", "1", "0").Elems[0].Int != 5000 {
		t.Errorf("%d %s", status, body)
	}
}

func TestHiddenValuesAreHidden(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("CONFIG", "SET", "slowlog-log-slower-than", "0")
	b.admin("FUNCTION", "LOAD", "#!lua name=l\nlocal word = 'sesame' redis.register_function('f', function() return word end)")
	for _, line := range []string{
		"SET k sesame", "GET k", "HSET h f sesame", "HGETALL h", "LPUSH l sesame", "LRANGE l 0 -1", "SLOWLOG GET 100", "CONFIG GET maxmemory",
		"XADD s 1-1 f sesame", "XRANGE s - +", "GETRANGE k 0 -1", "FUNCTION LIST WITHCODE", "FUNCTION DUMP",
	} {
		status, body := b.do(line)
		if status != 200 || strings.Contains(body, "sesame") || strings.HasPrefix(line, "CONFIG") != strings.Contains(body, "maxmemory") {
			t.Errorf("%s: %d %s", line, status, body)
		}
		if line == "FUNCTION DUMP" && strings.Contains(body, `"b":`) {
			t.Errorf("%s: %s", line, body)
		}
	}
	if status, body := b.do("STRLEN k"); status != 200 || !strings.Contains(body, `"i":"6"`) {
		t.Errorf("a length: %d %s", status, body)
	}
	if status, body := b.ask("GET", "api/audit", ""); status != 200 || strings.Contains(body, "sesame") || !strings.Contains(body, `"t":"k"`) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := b.ask("GET", "api/key?k="+url("k"), ""); strings.Contains(body, "digest") {
		t.Errorf("the digest of a hidden value: %s", body)
	}
	var me struct{ Need map[string]string }
	if b.get("api/me", &me); fmt.Sprint(me.Need) != "map[key.dump:http-console-values yes]" {
		t.Errorf("what the console refuses: %v", me.Need)
	}
}
