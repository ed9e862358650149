package httpidem

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// recorder is the ResponseWriter of a handler. It holds the response back until end, so that the response is
// kept before the client has it. A flush, or a body that is too large, sends the held part; the rest then
// passes through. Like any ResponseWriter it serves one goroutine at a time.
type recorder struct {
	w      http.ResponseWriter
	limit  int
	before http.Header // the fields that were set before the handler ran
	header http.Header // the fields that the handler sees
	fields http.Header // the response's fields: a copy of header when the status was written

	status   int // 0: none yet
	written  int64
	body     bytes.Buffer
	sending  bool // the status and the held body are sent; further writes are sent at once
	omitted  bool // the response cannot be repeated
	taken    bool // the handler has hijacked the connection
	exceeded bool // a Write exceeded the announced length: net/http takes no further one
}

func newRecorder(w http.ResponseWriter, limit int) *recorder {
	before := w.Header().Clone()
	if before == nil {
		before = http.Header{}
	}
	return &recorder{w: w, limit: limit, before: before, header: before.Clone()}
}

// began reports whether the handler has begun a response or hijacked the connection.
func (c *recorder) began() bool { return c.status != 0 || c.taken }

// truncated reports whether the handler has written fewer bytes than it announced: something ended it.
func (c *recorder) truncated() bool {
	length, ok := c.announced()
	return ok && hasBody(c.status) && c.written < length
}

// announced returns the length of the body that the handler has announced.
func (c *recorder) announced() (length int64, ok bool) {
	text := c.fields.Get("Content-Length")
	if text == "" {
		return 0, false
	}
	length, err := strconv.ParseInt(text, 10, 64)
	return length, err == nil && length >= 0
}

// Header implements http.ResponseWriter.
func (c *recorder) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter. Informational responses (1xx) are sent at once, and are not
// kept.
func (c *recorder) WriteHeader(status int) {
	switch {
	case c.began():
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		c.copyHeader(c.header)
		c.w.WriteHeader(status)
	case status < 100 || status > 999:
		panic(fmt.Sprintf("httpidem: the handler has written the invalid status %d", status)) // as net/http does, and before it is kept
	default:
		c.status, c.fields = status, c.header.Clone()
		if status == http.StatusSwitchingProtocols {
			c.omitted = true
			c.send()
		}
	}
}

// Write implements http.ResponseWriter.
func (c *recorder) Write(p []byte) (int, error) {
	if c.taken {
		return 0, http.ErrHijacked
	}
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	if !hasBody(c.status) && len(p) > 0 {
		return 0, http.ErrBodyNotAllowed
	}
	if length, ok := c.announced(); c.exceeded || ok && c.written+int64(len(p)) > length {
		c.exceeded = true
		return 0, http.ErrContentLength
	}
	c.written += int64(len(p))
	if !c.omitted && c.body.Len()+len(p) > c.limit {
		c.send()
		c.omitted = true
		c.body = bytes.Buffer{}
	}
	if !c.omitted {
		c.sniff(p)
		c.body.Write(p)
	}
	if c.sending {
		return c.w.Write(p)
	}
	return len(p), nil
}

// sniff sets the content type of a body as net/http does at the first write: a repetition writes the body in
// one piece, which could give another type.
func (c *recorder) sniff(p []byte) {
	_, typed := c.fields["Content-Type"]
	if !typed && c.body.Len() == 0 && len(p) > 0 && c.fields.Get("Content-Encoding") == "" && c.fields.Get("Transfer-Encoding") == "" {
		c.fields.Set("Content-Type", http.DetectContentType(p))
	}
}

// copyHeader replaces the fields of the underlying response.
func (c *recorder) copyHeader(from http.Header) {
	to := c.w.Header()
	clear(to)
	maps.Copy(to, from)
}

// send sends the held part of the response; further writes are then sent at once.
func (c *recorder) send() {
	if c.sending {
		return
	}
	c.sending = true
	c.copyHeader(c.fields)
	c.w.WriteHeader(c.status)
	if c.body.Len() > 0 {
		_, _ = c.w.Write(c.body.Bytes()) // the next Write has the same error
	}
}

// Flush implements http.Flusher.
func (c *recorder) Flush() { _ = c.FlushError() }

// FlushError is the flush that http.ResponseController calls. The client then has the response before it is
// kept.
func (c *recorder) FlushError() error {
	if c.taken {
		return http.ErrHijacked
	}
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	c.send()
	return http.NewResponseController(c.w).Flush()
}

// Hijack implements http.Hijacker. A connection that the handler takes over has no response to keep.
func (c *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	if err == nil {
		c.taken, c.omitted = true, true
	}
	return conn, rw, err
}

// Unwrap returns the underlying ResponseWriter, for the deadlines of http.ResponseController.
func (c *recorder) Unwrap() http.ResponseWriter { return c.w }

// end sends the response, if it has not been sent, and its trailers.
func (c *recorder) end() {
	if c.taken {
		return
	}
	c.send()
	to := c.w.Header()
	for name, values := range c.header {
		if strings.HasPrefix(name, http.TrailerPrefix) || slices.Contains(c.trailers(), name) {
			to[name] = values
		}
	}
}

// trailers returns the names of the trailers that the handler has announced.
func (c *recorder) trailers() (names []string) {
	for _, list := range c.fields["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// kept returns the fields that a repetition gets.
func (c *recorder) kept(cookies bool) http.Header { return keepable(c.fields, c.before, cookies) }
