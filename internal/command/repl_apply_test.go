package command

import (
	"errors"
	"net"
	"testing"
)

// A link that is not the service's any more changes nothing, whatever it has
// received before: REPLICAOF has been answered.
func TestALinkThatWasReplacedDoesNothing(t *testing.T) {
	s := gated(t)
	l := newLink(s.repl, "127.0.0.1", 1)
	defer l.stop()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	for _, stream := range []string{
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
		"*1\r\n$4\r\nPING\r\n",
		"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n",
		"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\nm\r\n",
		"*1\r\n$7\r\nUNKNOWN\r\n",
		"*1\r\n$8\r\nFLUSHALL\r\n",
		"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n*1\r\n$4\r\nEXEC\r\n",
	} {
		f := newFollower(l, newMasterConn(l, a))
		used, err := f.apply([]byte(stream))
		if used != 0 || !errors.Is(err, errReplaced) || s.DB.Log().End() != 0 || f.tx.Begun() {
			t.Errorf("%q: %d, %v; the stream is at %d", stream, used, err, s.DB.Log().End())
		}
		f.close()
	}
	x := s.NewSession(nil)
	defer x.Closed(nil)
	if v := x.Do(words("DBSIZE")...); v.Int != 0 {
		t.Errorf("there are %d keys", v.Int)
	}
}
