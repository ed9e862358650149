package oplog

import (
	"testing"
	"testing/synctest"
)

// sleeper is a goroutine that waits for a reader's bytes.
type sleeper struct {
	t     *testing.T
	r     *Reader
	awake chan error
}

func (s *sleeper) sleep() {
	s.t.Helper()
	go func() { s.awake <- s.r.Wait(s.t.Context()) }()
	if s.wakes() {
		s.t.Fatal("the reader does not sleep")
	}
}

// wakes reports whether the goroutine has woken.
func (s *sleeper) wakes() bool {
	s.t.Helper()
	synctest.Wait()
	select {
	case err := <-s.awake:
		if err != nil {
			s.t.Fatal(err)
		}
		return true
	default:
		return false
	}
}

func (s *sleeper) reads(want string) {
	s.t.Helper()
	if b := s.r.Next(); string(b) != want {
		s.t.Fatalf("the reader returns %q, want %q", b, want)
	}
}

func TestAPendingPushSparesAReaderTheWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0)
		l.Keep(1 << 20)
		if l.BeginPush() {
			t.Fatal("a push begins although no reader is pushed")
		}
		r, err := l.ReaderAt(0, ForReplica)
		if err != nil {
			t.Fatal(err)
		}
		s := &sleeper{t, r, make(chan error)}
		s.sleep()
		r.SetPushed()
		r.SetPushed() // does nothing

		if one, two := l.BeginPush(), l.BeginPush(); !one || !two {
			t.Fatal("no push begins")
		}
		l.AppendVerbatim([]byte("one"), 0)
		l.EndPush()
		l.AppendVerbatim([]byte("two"), 0)
		if s.wakes() {
			t.Fatal("the reader wakes while a push is pending")
		}
		s.reads("onetwo") // as the loop does
		l.EndPush()
		l.AppendVerbatim([]byte("three"), 0)
		if !s.wakes() {
			t.Fatal("the reader sleeps on after the last push")
		}
		s.reads("three")

		s.sleep()
		l.BeginPush()
		l.AppendVerbatim(make([]byte, mostPushed), 0)
		if !s.wakes() {
			t.Error("the reader sleeps on, although much waits")
		}
		l.EndPush()
		r.Close()
		if l.BeginPush() {
			t.Error("a push begins for a closed reader")
		}
	})
}

// The limit of a reader moves when the files hold more. The wake may not get lost between that and the end of a push.
func TestAPendingPushSparesAReaderTheWakeByItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0)
		l.Keep(1 << 20)
		l.Bound(1 << 20)
		r, err := l.ReaderAt(0, ForReplica)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.SetPushed()
		s := &sleeper{t, r, make(chan error)}
		s.sleep()
		l.BeginPush()
		l.AppendVerbatim([]byte("onetwo"), 0)
		l.SetWritten(3)
		if s.wakes() {
			t.Fatal("the reader wakes while a push is pending")
		}
		l.EndPush()
		s.reads("one")
		s.reads("")
		l.SetWritten(6)
		if !s.wakes() {
			t.Fatal("the reader sleeps on after the push")
		}
		s.reads("two")
	})
}
