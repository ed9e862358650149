package oplog

import "testing"

// A replica has no data that a killed server's files lack.
func TestAReplicaReadsNoFurtherThanTheFilesHold(t *testing.T) {
	l := New(0)
	l.Keep(1 << 10)
	l.Bound(1 << 20) // there are files
	r, err := l.ReaderAt(0, ForReplica)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l.AppendVerbatim([]byte("0123456789"), 0)
	if b := r.Next(); b != nil {
		t.Fatalf("%q before it is written", b)
	}
	l.SetWritten(4)
	if b := r.Next(); string(b) != "0123" {
		t.Fatalf("%q", b)
	}
	l.Fail(errNoFile)
	if b := r.Next(); string(b) != "456789" {
		t.Fatalf("%q while the files fail", b)
	}
}

// An appender does not report a sync that ends after the stream was reset.
func TestAFormerStreamsOffsetsDoNotCount(t *testing.T) {
	l := New(0)
	l.Keep(1 << 10)
	l.AppendVerbatim([]byte("0123456789"), 0)
	old, err := l.ReaderAt(10, ForFile)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	l.Reset(3)
	old.SetWritten(10)
	old.SetSynced(10)
	if l.Written() != 3 || l.Synced() != 3 {
		t.Fatalf("written %d, synced %d", l.Written(), l.Synced())
	}
	l.AppendVerbatim([]byte("abc"), 0)
	l.SetAlways(true)
	if !l.Settled(10) || l.Settled(6) {
		t.Fatal("want an offset of the former stream settled, and one of this stream pending")
	}
}
