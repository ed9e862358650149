package modeltest

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/transcript"
)

// contentRequests make a container, and change it by one item.
var contentRequests = map[string][2]string{
	"hash":       {"HSET k a 1 b 2", "HSET k a 3"},
	"list":       {"RPUSH k a b c", "LPUSH k c"},
	"order":      {"RPUSH k a b", "LINSERT k BEFORE a b"},
	"set":        {"SADD k a b", "SREM k a"},
	"sorted set": {"ZADD k 1 a 2 b", "ZADD k 1.5 a"},
	"stream":     {"XADD k 1-1 a b", "XADD k 2-1 a c"},
	"group":      {"XADD k 1-1 a b", "XGROUP CREATE k g 0"},
	"field name": {"HSET k a 1", "HSET k b 1"},
	"rule":       {"EXPIRY RULE SET r MATCH * TO s", "EXPIRY RULE SET r MATCH a* TO s"},
	"no rule":    {"EXPIRY RULE SET r MATCH * TO s", "EXPIRY RULE DEL r"},
}

func TestAReplicaNoticesWhatAContainerHolds(t *testing.T) {
	for name, r := range contentRequests {
		t.Run(name, func(t *testing.T) {
			e, err := transcript.NewEngine()
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			replica, err := NewReplica()
			if err != nil {
				t.Fatal(err)
			}
			defer replica.Close()
			if _, err := e.Do(1, strings.Fields(r[0])...); err != nil {
				t.Fatal(err)
			}
			if err := replica.Follow(e.DB); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Do(1, strings.Fields(r[1])...); err != nil {
				t.Fatal(err)
			}
			e.DB.Drain() // the effects are lost
			if err := replica.Follow(e.DB); err == nil {
				t.Fatalf("the effects of %q were lost, and nothing was noticed", r[1])
			}
		})
	}
}
