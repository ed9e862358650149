package goredis

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/resp"
)

// refusal is an error reply, as go-redis returns it.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// go-redis joins the replies of the Sentinels that it has asked, and a Sentinel that knows no master replies with null.
func TestWhatSentinelsReplyIsNoReplyToTheCall(t *testing.T) {
	none := "redis: all sentinels specified in configuration are unreachable: %w"
	for _, x := range []struct {
		err  error
		kind resp.Kind
		ok   bool
	}{
		{redis.Nil, resp.KindNull, true},
		{fmt.Errorf("a hook: %w", redis.Nil), resp.KindNull, true},
		{fmt.Errorf("a hook: %w", refusal("WRONGTYPE")), resp.KindError, true},
		{fmt.Errorf(none, errors.Join(redis.Nil, redis.Nil)), 0, false},
		{fmt.Errorf(none, errors.Join(refusal("NOAUTH Authentication required."))), 0, false},
	} {
		if v, ok := errorValue(x.err); ok != x.ok || ok && v.Kind != x.kind {
			t.Errorf("%v: %v, %v", x.err, v, ok)
		}
	}
}
