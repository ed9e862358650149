package session

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// A reply with repeated items may be much longer than the value. The server refuses it if it is longer than 64 MB
// and longer than the value.
func TestAReplyOfRandomItemsHasABound(t *testing.T) {
	tier.Sequential(t)
	svc := loopService(t)
	s := svc.NewSession(nil)
	mega, huge := strings.Repeat("m", 1<<20), strings.Repeat("h", command.MaxDrawBytes+1)
	for _, words := range [][]string{
		{"SADD", "s", "a"}, {"HSET", "h", "a", ""}, {"ZADD", "z", "1", "a"},
		{"SADD", "s1", mega}, {"HSET", "h1", "f", mega}, {"ZADD", "z1", "1", mega}, {"HSET", "h2", "f", huge},
	} {
		if v := do(s, words...); v.Int != 1 {
			t.Fatalf("%.20q: %.60v", words, v)
		}
	}
	for _, x := range []struct {
		ask  string
		want int // elements; -1: the error
	}{
		{"SRANDMEMBER s -134217728", -1}, {"HRANDFIELD h -134217728", -1}, {"HRANDFIELD h -134217728 WITHVALUES", -1},
		{"ZRANDMEMBER z -134217728", -1}, {"ZRANDMEMBER z -134217728 WITHSCORES", -1},
		{"SRANDMEMBER s1 -64", -1}, {"HRANDFIELD h1 -64 WITHVALUES", -1}, {"ZRANDMEMBER z1 -64", -1}, {"ZRANDMEMBER z1 -64 WITHSCORES", -1},
		{"HRANDFIELD h2 -2 WITHVALUES", -1},
		{"SRANDMEMBER s1 -60", 60}, {"HRANDFIELD h1 -60 WITHVALUES", 120}, {"ZRANDMEMBER z1 -60", 60},
		{"HRANDFIELD h2 -1 WITHVALUES", 2}, {"HRANDFIELD h1 -1000", 1000}, {"SRANDMEMBER s -1000", 1000},
		{"ZRANDMEMBER z -1000 WITHSCORES", 2000}, {"SRANDMEMBER none -134217728", 0}, {"HRANDFIELD none -134217728", 0},
		{"ZRANDMEMBER none -134217728", 0},
		{"SRANDMEMBER s 134217728", 1}, {"HRANDFIELD h 0", 0},
	} {
		v := do(s, strings.Fields(x.ask)...)
		if x.want < 0 && v.Str != string(command.ErrDrawSize) || x.want >= 0 && (v.Str != "" || len(v.Elems) != x.want) {
			t.Errorf("%s: %.60q and %d elements, want %d (-1: an error)", x.ask, v.Str, len(v.Elems), x.want)
		}
	}
}

// The reply is built in the background, and the output limit ends it before it is complete.
func TestTheOutputLimitEndsAReplyOfRandomItemsWhileItIsMade(t *testing.T) {
	svc := loopService(t, "client-output-buffer-limit", "normal 4mb 0 0")
	do(svc.NewSession(nil), "SADD", "s", strings.Repeat("m", 1<<10))
	do(svc.NewSession(nil), "HSET", "h", "f", strings.Repeat("m", 1<<10))
	do(svc.NewSession(nil), "ZADD", "z", "1", strings.Repeat("m", 1<<10))
	for _, ask := range []string{"SRANDMEMBER s -16000", "HRANDFIELD h -16000 WITHVALUES", "ZRANDMEMBER z -16000 WITHSCORES"} {
		c := newLoopConn()
		s := svc.NewSession(c)
		reply, beside := c.beside(s, strings.Fields(ask)...)
		if !beside || len(reply) > 4<<20 {
			t.Errorf("%s: in the background: %v; a reply of %d bytes", ask, beside, len(reply))
		}
		select {
		case err := <-c.kill:
			if err != errSlowReader {
				t.Errorf("%s: %v", ask, err)
			}
		default:
			t.Errorf("%s: the connection is not closed", ask)
		}
		s.Closed(errSlowReader)
	}
}
