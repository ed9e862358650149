package console

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The bounds of viewers' requests.
const (
	maxBody     = 1 << 20  // bytes of a request's body
	openBody    = 16 << 10 // without a login: the server keeps the names of failed logins
	maxRequests = 32       // of a viewer at a time
	maxStreams  = 4        // of a login at a time: a browser opens six connections to a host
	maxShared   = 32       // of a viewer without a login, which may be several people behind one proxy
	userStreams = 40       // of a user
	allStreams  = 128
)

// shares bounds the data that all requests read from the server at a time. A request that runs commands holds
// one of allShares, and takes up to maxReply bytes for replies and about as much for its answer. A user has
// at most userShares; a user who has all of them waits, and others do not. The last firstShares are for users
// who have none.
type shares struct {
	mu    sync.Mutex // guards the fields below
	held  int
	by    map[string]int // by user
	freed chan struct{}  // closed when a share becomes free, and then replaced
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
