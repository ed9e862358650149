package group

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
)

func TestAStampIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []shard.Stamp{{}, {Sent: 7 * time.Second}, {Sent: 1, Released: true}} {
		epoch, got, ok := parseStamp(stampText(3, want))
		if !ok || epoch != 3 || got != want {
			t.Errorf("%+v is read as %+v of epoch %d, %v", want, got, epoch, ok)
		}
	}
	for _, bad := range []string{"", "PING", "ebb-group/1/2", "ebb-group/x/2/0", "ebb-group/1/x/0", "other/1/2/0",
		"ebb-group/1/2/0/0", "ebb-group/-1/2/0"} {
		if _, _, ok := parseStamp(bad); ok {
			t.Errorf("%q is read as a stamp", bad)
		}
	}
}

func TestTheNameOfAStreamHasItsEpoch(t *testing.T) {
	m := &Member{opt: Options{Random: func() uint64 { return 1<<64 - 1 }}}
	for _, want := range []uint64{1, 17, 1<<63 - 1} {
		name := m.nameOf(want)
		if got, err := epochOf(name); err != nil || got != want || len(name) != 40 {
			t.Errorf("%s: epoch %d, %v, want %d", name, got, err, want)
		}
	}
	for _, bad := range []string{"", "?", "0123456789abcdef", "xyz3456789abcdef0123456789abcdef01234567"} {
		if got, err := epochOf(bad); err == nil {
			t.Errorf("%q has the epoch %d", bad, got)
		}
	}
}

func TestAGreetingIsOfTheSameGroup(t *testing.T) {
	m := &Member{opt: Options{Group: &settings.Group{Name: "ebb"}}}
	want := shard.Greeting{From: directory.Member{Node: 2, Incarnation: 5}, Epoch: 7}
	if got, err := m.parseGreeting("ebb/2/5/7"); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "other/2/5/7", "ebb/2/5", "ebb/x/5/7", "ebb/2/x/7", "ebb/2/5/x", "ebb/2/5/-7", "ebb/2/5/7/8"} {
		if g, err := m.parseGreeting(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, g)
		}
	}
}
