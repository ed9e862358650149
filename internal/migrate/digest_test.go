package migrate

import "testing"

// A pending entry counts with its consumer; a consumer without one does not count.
func TestConsumersCountWithTheirPendingEntries(t *testing.T) {
	url := startEbb(t)
	c := open(t, url)
	read := func() *value {
		t.Helper()
		v, err := readValue(c.run(t, "DUMP s").Str, false)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c.run(t, "XADD s 1-1 i 1")
	c.run(t, "XGROUP CREATE s g 0")
	before := read()
	c.run(t, "XGROUP CREATECONSUMER s g idle")
	if !before.same(read()) {
		t.Error("a consumer that waits counts")
	}
	c.run(t, "XREADGROUP GROUP g idle STREAMS s >")
	pending := read()
	if before.same(pending) {
		t.Error("a pending entry does not count")
	}
	c.run(t, "XCLAIM s g another 0 1-1 TIME 1 RETRYCOUNT 1 JUSTID")
	c.run(t, "XCLAIM s g idle 0 1-1 TIME 1 RETRYCOUNT 1 JUSTID")
	mine := read()
	c.run(t, "XCLAIM s g another 0 1-1 TIME 1 RETRYCOUNT 1 JUSTID")
	if mine.same(read()) {
		t.Error("the consumer of a pending entry does not count")
	}
}
