package console

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"sync"
	"time"
)

// The bounds of what viewers may ask for.
const (
	maxBody     = 1 << 20  // bytes of a request's body
	openBody    = 16 << 10 // without a login: the names of users who fail are kept
	maxRequests = 32       // of a viewer at a time
	maxStreams  = 4        // of a login at a time: a browser opens six connections to a host
	maxShared   = 32       // of a viewer without a login, which may be several people behind one proxy
	userStreams = 40       // of a user
	allStreams  = 128
)

// crossSite reports whether a page of another site has made the browser send a request. The API refuses
// such requests, reads included. A program that is no browser does not send the header.
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
			return &failure{status: http.StatusUnsupportedMediaType, Text: fmt.Sprintf("the Content-Type is %q, and must be application/json",
				r.Header.Get("Content-Type"))}
		}
	}
	return nil
}

// shares bounds what all requests read of the server at a time. A request that runs commands holds one of allShares, of which a
// user has at most userShares, and takes up to maxReply bytes for replies and about as much for its answer. A user who has all
// of them waits; others do not: the last firstShares are for users who have none.
type shares struct {
	mu    sync.Mutex // guards what follows
	held  int
	by    map[string]int // by user
	freed chan struct{}  // closed when a share becomes free, and made anew
}

const (
	allShares   = 12
	userShares  = 4
	firstShares = 4
	// shareTime is the longest time that a request waits for a share.
	shareTime = 5 * time.Second
)

// acquire takes a share for a user. The caller calls release at the end.
func (s *shares) acquire(ctx context.Context, user string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	for {
		s.mu.Lock()
		most := allShares
		if s.by[user] > 0 {
			most -= firstShares
		}
		if s.held < most && s.by[user] < userShares {
			if s.by == nil {
				s.by = map[string]int{}
			}
			s.held++
			s.by[user]++
			s.mu.Unlock()
			return func() { s.release(user) }, nil
		}
		if s.freed == nil {
			s.freed = make(chan struct{})
		}
		freed := s.freed
		s.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, errTooMany
		}
	}
}

// awaited reports whether a request waits for a share.
func (s *shares) awaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed != nil
}

// release returns a share.
func (s *shares) release(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	if s.by[user]--; s.by[user] == 0 {
		delete(s.by, user)
	}
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

var errTooMany = &failure{status: http.StatusTooManyRequests, retry: 1,
	Text: fmt.Sprintf("too many requests at a time: a viewer may have %d requests and %d streams, a user without a login at one address %d streams, "+
		"a user %d streams, and all viewers %d streams", maxRequests, maxStreams, maxShared, userStreams, allStreams)}

// pastDeadline is a deadline that has passed: it ends the reads and the writes of a connection.
var pastDeadline = time.Unix(1, 0)

// admit counts a request of a viewer, which may be nil, and bounds what it takes up. The caller calls leave at the
// end of the request. The end of the console cuts the connection off.
func (c *Console) admit(q *request) (leave func(), err error) {
	if v := q.v; v != nil {
		v.mu.Lock()
		full := v.requests >= maxRequests
		if !full {
			v.requests++
		}
		v.mu.Unlock()
		if full {
			return nil, errTooMany
		}
	}
	most := int64(maxBody)
	if q.v == nil {
		most = openBody
	}
	q.r.Body = http.MaxBytesReader(q.w, q.r.Body, most)
	ctx, cancel := context.WithCancel(q.r.Context())
	q.ctx = ctx
	conn := http.NewResponseController(q.w)
	stop := context.AfterFunc(c.closing, func() {
		cancel()
		_ = conn.SetReadDeadline(pastDeadline) // not every ResponseWriter can
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

// stream turns a request into a stream, which may last; cut ends its writes. The caller calls end at its end. While the stream lasts
// it does not count as a request.
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
	user := v.id.Name()
	if v.streams >= most || c.streams >= allStreams || c.streamsOf[user] >= userStreams {
		return nil, errTooMany
	}
	v.streams++
	v.requests--
	c.streams++
	c.streamsOf[user]++
	conn := http.NewResponseController(q.w)
	_ = conn.SetWriteDeadline(time.Time{}) // the server's bound is for answers that end
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
		c.streams--
		if c.streamsOf[user]--; c.streamsOf[user] == 0 {
			delete(c.streamsOf, user)
		}
		c.mu.Unlock()
		v.mu.Lock()
		v.streams--
		v.requests++
		v.mu.Unlock()
	}, nil
}
