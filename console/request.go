package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// request is a request to the API.
type request struct {
	w   http.ResponseWriter
	r   *http.Request
	ctx context.Context        // ends with the request, and with the console
	end context.CancelFunc     // ends ctx
	v   *viewer                // nil if the route is open and the viewer has no login
	cut atomic.Pointer[cutter] // of a stream

	sent    []byte              // the body
	params  map[string][]string // the parameters
	release func()              // releases the share; nil: there is none
}

// from returns a call as Console.as does, for the viewer of a request, whose address the audit shows.
func (c *Console) from(q *request, db int) (*call, error) {
	k, err := c.as(q.v, db)
	if err == nil {
		k.addr = q.r.RemoteAddr
	}
	return k, err
}

// share acquires a share for the request.
func (q *request) share(c *Console) error {
	release, err := c.shares.acquire(q.ctx, q.v.id.Name())
	q.release = release
	return err
}

// shareAgain lets a waiting request have the share of this one, and acquires another share.
func (q *request) shareAgain(c *Console) error {
	if q.release == nil || !c.shares.awaited() {
		return nil
	}
	q.release()
	return q.share(c)
}

// text returns a parameter, "" if it is missing.
func (q *request) text(name string) string {
	if !q.has(name) {
		return ""
	}
	return q.params[name][0]
}

// has reports whether a request has a parameter.
func (q *request) has(name string) bool { return len(q.params[name]) > 0 }

// number returns a parameter, or def if it is missing or empty.
func (q *request) number(name string, def, low, high int64) (int64, error) {
	s := q.text(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		return 0, badRequest("the parameter %s is %q; it must be a whole number from %d to %d", name, s, low, high)
	}
	return n, nil
}

// word returns a parameter that must be one of some words; the first of them if it is missing.
func (q *request) word(name string, words ...string) (string, error) {
	s := q.text(name)
	if s == "" {
		return words[0], nil
	}
	for _, w := range words {
		if s == w {
			return s, nil
		}
	}
	return "", badRequest("the parameter %s is %q; it must be one of %s", name, s, strings.Join(words, ", "))
}

// key returns a parameter that has bytes in base64url without padding, such as k.
func (q *request) key(name string) (string, error) {
	s := q.text(name)
	key, err := decodeKey(s)
	if err != nil || !q.has(name) {
		return "", badRequest("the parameter %s is %.80q; it must be bytes in base64url without padding", name, s)
	}
	return key, nil
}

// bodyTime is the time that a client has to send a body.
const bodyTime = 10 * time.Second

// bodyTimer ends the reading of a body that does not arrive.
type bodyTimer struct {
	conn *http.ResponseController
	*time.Timer
}

func (b *bodyTimer) cut() { _ = b.conn.SetReadDeadline(pastDeadline) } // not every ResponseWriter supports this

// awaitBody starts the time limit for the body of a request. The caller calls came when the body has arrived.
func (q *request) awaitBody() (came func()) {
	b := &bodyTimer{conn: http.NewResponseController(q.w)}
	b.Timer = time.AfterFunc(bodyTime, b.cut)
	v := q.v
	if v == nil {
		return func() { b.Stop() }
	}
	v.mu.Lock()
	v.reading = append(v.reading, b)
	v.mu.Unlock()
	return func() {
		b.Stop()
		v.mu.Lock()
		defer v.mu.Unlock()
		v.reading = slices.DeleteFunc(v.reading, func(x *bodyTimer) bool { return x == b })
	}
}

// read reads the body of a request.
func (q *request) read() (err error) {
	defer q.awaitBody()()
	q.sent, err = io.ReadAll(q.r.Body)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &failure{status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the body has more than %d bytes", long.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &failure{status: http.StatusRequestTimeout, Text: "the body has not arrived within " + bodyTime.String()}
	case err != nil:
		return badRequest("the body cannot be read: %v", err)
	}
	return nil
}

// parseBody reads the parameters of a request from its body instead of its URL.
func (q *request) parseBody() error {
	params := map[string]string{}
	if err := q.body(&params); err != nil {
		return err
	}
	q.params, q.sent = make(map[string][]string, len(params)), nil
	for name, value := range params {
		q.params[name] = []string{value}
	}
	return nil
}

// body decodes the JSON of a request into x. Unknown fields are errors.
func (q *request) body(x any) error {
	in := json.NewDecoder(bytes.NewReader(q.sent))
	in.DisallowUnknownFields()
	if err := in.Decode(x); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // its text shows Go types
			return badRequest("the body has the JSON value %s at %q; the value must have another type", wrong.Value, wrong.Field)
		}
		return badRequest("the body must be JSON: %v", err)
	}
	if in.More() {
		return badRequest("the body must be one JSON value")
	}
	return nil
}

// pastDeadline is a deadline in the past: it ends the reads and the writes of a connection.
var pastDeadline = time.Unix(1, 0)

// byeTime is the time limit for the last event of a stream when the console closes.
const byeTime = 200 * time.Millisecond

// cutter ends the writes of a connection, unless its handler has returned.
type cutter struct {
	conn *http.ResponseController

	mu    sync.Mutex // guards the fields below
	over  bool
	timer *time.Timer
}

// now ends the writes of the response at once.
func (x *cutter) now() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		_ = x.conn.SetWriteDeadline(pastDeadline) // not every ResponseWriter supports this
	}
}

// soon ends the writes after byeTime.
func (x *cutter) soon() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over && x.timer == nil {
		x.timer = time.AfterFunc(byeTime, x.now)
	}
}

// end must be called before the handler returns.
func (x *cutter) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
	if x.timer != nil {
		x.timer.Stop()
	}
}
