package console

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"time"
)

// crossSite reports whether a page of another site has caused the browser to send a request. The API refuses
// such requests, even reads. Programs other than browsers do not send the header.
func crossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return true
}

// vet refuses requests to the API by their form, before the console does any work for them.
func vet(r *http.Request) *failure {
	if crossSite(r) {
		return &failure{status: http.StatusForbidden, Text: "a page of another site has sent this request"}
	}
	if r.Method == http.MethodPost {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			return &failure{status: http.StatusUnsupportedMediaType, Text: fmt.Sprintf("the Content-Type is %q; it must be application/json",
				r.Header.Get("Content-Type"))}
		}
	}
	return nil
}

// admit counts a request. If the viewer has too many, it ends the one that has waited longest for its body: a
// client without a login shares its viewer with all others at its address, and may never send its bodies.
func (v *viewer) admit() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.requests >= maxRequests {
		if len(v.reading) == 0 {
			return false
		}
		v.reading[0].cut()
		v.reading = v.reading[1:]
	}
	v.requests++
	return true
}

// admit counts a request of a viewer, which may be nil, and bounds its memory. The caller calls leave at the
// end of the request. Close of the console ends the connection.
func (c *Console) admit(q *request) (leave func(), err error) {
	if v := q.v; v != nil {
		if !v.admit() {
			return nil, errTooMany
		}
	}
	most := int64(maxBody)
	if q.v == nil {
		most = openBody
	}
	q.r.Body = http.MaxBytesReader(q.w, q.r.Body, most)
	ctx, cancel := context.WithCancel(q.r.Context())
	q.ctx, q.end = ctx, cancel
	conn := http.NewResponseController(q.w)
	stop := context.AfterFunc(c.closing, func() {
		cancel()
		_ = conn.SetReadDeadline(pastDeadline) // not every ResponseWriter supports this
		if cut := q.cut.Load(); cut != nil {
			cut.soon()
			return
		}
		_ = conn.SetWriteDeadline(pastDeadline)
	})
	return func() {
		stop()
		cancel()
		if v := q.v; v != nil {
			v.mu.Lock()
			v.requests--
			v.mu.Unlock()
		}
	}, nil
}

// stream turns a request into a stream, which has no time limit; cut ends its writes. The caller calls end at
// its end. Until then the stream does not count as a request.
func (c *Console) stream(q *request, cut *cutter) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := q.v
	v.mu.Lock()
	defer v.mu.Unlock()
	most := maxStreams
	if v.createdAt == 0 {
		most = maxShared
	}
	user, held := v.id.Name(), &heldStream{q.end}
	if v.streams >= most || len(c.streamsOf[user]) >= userStreams || !c.makeRoom(user) {
		return nil, errTooMany
	}
	v.streams++
	v.requests--
	c.streams++
	c.streamsOf[user] = append(c.streamsOf[user], held)
	conn := http.NewResponseController(q.w)
	_ = conn.SetWriteDeadline(time.Time{}) // the server's limit is for finite answers
	q.cut.Store(cut)
	stop := context.AfterFunc(q.ctx, func() { // the viewer has left, or the console is closing
		if c.closing.Err() == nil {
			cut.now()
			return
		}
		cut.soon()
	})
	return func() {
		stop()
		cut.end()
		c.mu.Lock()
		c.dropStream(user, held)
		c.mu.Unlock()
		v.mu.Lock()
		v.streams--
		v.requests++
		v.mu.Unlock()
	}, nil
}

// heldStream is an open stream.
type heldStream struct {
	end context.CancelFunc // ends it
}

// makeRoom makes room for one more stream of a user. If all streams are taken, it ends the oldest one of the user with most, unless
// that user would then have fewer than this one. So a user without a stream always gets one. The caller holds mu.
func (c *Console) makeRoom(user string) bool {
	if c.streams < allStreams {
		return true
	}
	most, largest := 0, ""
	for name, held := range c.streamsOf {
		if len(held) > most || len(held) == most && name < largest {
			most, largest = len(held), name
		}
	}
	if own := len(c.streamsOf[user]); own > 0 && most <= own+1 {
		return false
	}
	oldest := c.streamsOf[largest][0]
	c.dropStream(largest, oldest)
	oldest.end()
	return true
}

// dropStream stops counting a stream of a user, unless makeRoom has already ended it. The caller holds mu.
func (c *Console) dropStream(user string, held *heldStream) {
	at := slices.Index(c.streamsOf[user], held)
	if at < 0 {
		return
	}
	c.streams--
	if c.streamsOf[user] = slices.Delete(c.streamsOf[user], at, at+1); len(c.streamsOf[user]) == 0 {
		delete(c.streamsOf, user)
	}
}
