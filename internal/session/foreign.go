package session

import (
	"errors"
	"github.com/ebbdb/ebb/internal/command"
)

// A web page can make a browser send HTTP to any port of its machine and network: by a form, by
// fetch with a text/plain body, or by a host name that changes its address. The server would read
// the lines of such a request as inline commands, and the body could contain any command. So the
// server ends such a connection at its first line, before it reads a line of the body:
//
//	POST / HTTP/1.1          "POST" is not a command
//	SET /key HTTP/1.1        a first line that ends in a version of HTTP is not one either
//	Host: 127.0.0.1:6379     every request has this line, and browsers send it first
//
// Redis closes the connection at the first and the third of these.

var errForeign = errors.New("the client speaks HTTP")

// foreignEvery is the interval, in us, in which the server logs at most one attempt: a page can make
// thousands.
const foreignEvery = 60e6

// isHTTPRequestLine reports whether the first request of a connection, which is an
// inline one, is the first line of an HTTP request.
func isHTTPRequestLine(args [][]byte) bool {
	return len(args) == 3 && len(args[2]) > 5 && command.EqualFold(args[2][:5], "HTTP/")
}

// isHTTPWord reports whether the name of an unknown command is one of the words at the start of the lines of
// HTTP requests. Redis requires white space after "Host:", HTTP does not.
func isHTTPWord(name []byte) bool {
	return command.EqualFold(name, "POST") || len(name) >= 5 && command.EqualFold(name[:5], "Host:")
}

// closeForeign ends a connection that speaks HTTP.
func (c *Session) closeForeign() {
	c.cut(errForeign)
	c.svc.admin.Totals.ProtocolErrors.Add(1)
	now := c.svc.steady()
	last := c.svc.foreignAt.Load()
	if last != 0 && now-last < foreignEvery || !c.svc.foreignAt.CompareAndSwap(last, now) {
		return
	}
	c.svc.Log.Warn("Possible SECURITY ATTACK detected: a client sends HTTP (POST or Host:), as a web page can make a browser do; the "+
		"server closes the connection",
		"id", c.id, "client", c.conn.RemoteAddr())
}
