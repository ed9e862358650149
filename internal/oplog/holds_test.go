package oplog

import (
	"errors"
	"testing"
)

func TestAReplyWaitsForAllThatHoldsIt(t *testing.T) {
	l := New(0)
	l.AppendVerbatim(make([]byte, 100), 0)
	var w count
	if !l.OnSettled(100, &w) || l.Holds().Any() {
		t.Fatal("nothing holds replies")
	}
	l.SetAlways(true)
	l.SetGroup(true)
	term := l.Holds().Term()
	if l.OnSettled(100, &w) {
		t.Fatal("the offset is neither synced nor committed")
	}
	if l.SetSynced(100); w != 0 || l.Settled(100) || !l.Durable(100) {
		t.Errorf("synced, not committed: woken %d", w)
	}
	if l.SetCommitted(term, 99); w != 0 || l.Settled(100) || !l.Settled(99) {
		t.Errorf("committed up to the byte before: woken %d", w)
	}
	if l.SetCommitted(term, 100); w != 1 || !l.Settled(100) {
		t.Errorf("synced and committed: woken %d", w)
	}
	l.AppendVerbatim(make([]byte, 10), 0)
	l.SetCommitted(term, 110)
	if l.OnSettled(110, &w) {
		t.Error("the offset is settled although it is not synced")
	}
	l.SetSynced(110)
	if l.SetCommitted(term, 50); w != 2 || l.Committed() != 110 {
		t.Errorf("woken %d, committed %d: an older offset changes nothing", w, l.Committed())
	}
	if !l.OnSynced(110, &w) {
		t.Error("what waits for the files alone waits for a group")
	}
}

func TestADeposedMastersOffsetsDoNotCount(t *testing.T) {
	l := New(0)
	l.SetGroup(true)
	l.AppendVerbatim(make([]byte, 100), 0)
	before := l.Holds()
	var w count
	if l.OnSettled(100, &w) {
		t.Fatal("the offset is not committed")
	}
	l.Depose()
	after := l.Holds()
	if w != 1 || after.Term() != before.Term()+1 || !after.Group() || after.Older(before) != before || before.Older(after) != before {
		t.Errorf("woken %d; holds %x, before %x", w, after, before)
	}
	if l.SetCommitted(before.Term(), 100); l.Committed() != 0 || l.Settled(100) {
		t.Error("an acknowledgement of the term before counts")
	}
	if l.SetCommitted(l.Holds().Term(), 100); !l.Settled(100) {
		t.Error("one of this term does not")
	}
	l.Depose()
	if l.Settled(100) {
		t.Error("what the term before had committed counts in the next one")
	}
}

func TestWhatWaitsForAGroupAloneDoesSoWhileTheFilesFail(t *testing.T) {
	l := New(0)
	l.SetAlways(true)
	l.SetGroup(true)
	l.AppendVerbatim(make([]byte, 100), 0)
	l.Fail(errors.New("no space"))
	var w, again count
	if l.OnPromised(100, &w) || w != 0 {
		t.Fatalf("woken %d: it is not committed", w)
	}
	l.SetCommitted(l.Holds().Term(), 90)
	if l.OnPromised(90, &again) == false || w != 0 {
		t.Errorf("woken %d by an offset before", w)
	}
	if l.SetCommitted(l.Holds().Term(), 100); w != 1 || l.Settled(100) {
		t.Errorf("woken %d; it is not synced", w)
	}
	l.OnPromised(200, &again)
	if l.Fail(nil); again != 1 {
		t.Errorf("woken %d when the files work again", again)
	}
}

func TestAnAlarmWakesWhatWaitsForAGroup(t *testing.T) {
	l := New(0)
	l.SetGroup(true)
	l.AppendVerbatim(make([]byte, 100), 0)
	var w, lease, off count
	l.OnSettled(100, &w)
	l.OnAlarm(&lease)
	n := l.Alarms()
	if l.Alarm(); w != 1 || lease != 1 || l.Alarms() != n+1 {
		t.Errorf("woken %d and %d, %d alarms", w, lease, l.Alarms()-n)
	}
	l.Fail(errors.New("no space")) // without appendfsync always a group does not wait for these files
	if l.OnSettled(100, &off); off != 0 {
		t.Error("the waiter does not wait")
	}
	l.SetGroup(false)
	if off != 1 || !l.Settled(100) {
		t.Errorf("without a group: woken %d", off)
	}
}

func TestEachChangeOfTheRoleIsATerm(t *testing.T) {
	l := New(0)
	l.SetGroup(true)
	l.AppendVerbatim(make([]byte, 100), 0)
	first := l.Holds()
	l.Rest()
	rests := l.Holds()
	if !first.Leads() || rests.Leads() || !rests.Group() || !rests.Any() || rests.Term() == first.Term() || !l.Settled(100) {
		t.Errorf("a member that rests holds %x, before %x", rests, first)
	}
	l.Lead()
	if now := l.Holds(); !now.Leads() || now.Term() == rests.Term() || l.Settled(100) {
		t.Errorf("the master holds %x, before %x", now, rests)
	}
	if l.SetCommitted(rests.Term(), 100); l.Settled(100) {
		t.Error("what the term before had committed counts")
	}
}
