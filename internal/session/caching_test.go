package session

import "testing"

// A message does not overtake the reply of a command that runs in the background.
func TestMessagesWaitForAReplyThatIsOnItsWay(t *testing.T) {
	c := trackingService(t).NewSession(quietConn{})
	ask(t, c, "HELLO", "3")
	p := &parked{out: []byte("$1\r\nv\r\n")}
	c.parked = p
	c.Push([]byte(">1\r\n+late\r\n"))
	if out := c.TakePushes(nil); len(out) > 0 {
		t.Errorf("%q came while the command ran", out)
	}
	p.state.Store(parkedFinished)
	if out := c.TakePushes(nil); string(out) != "$1\r\nv\r\n>1\r\n+late\r\n" {
		t.Errorf("then came %q", out)
	}
	if c.parked != nil {
		t.Error("the session is parked still")
	}
}
