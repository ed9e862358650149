package console

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/system"
)

// viewer is one user at one address, which the requests of a browser share. It has the sessions in which the
// user's commands run.
type viewer struct {
	svc   *session.Service
	clock clock.Clock
	id    *session.Identity
	addr  string               // of the HTTP client that it was made for, ip:port
	guest session.GuestOptions // of its sessions

	mu          sync.Mutex // guards the fields below
	idle        []*viewerSession
	requests    int          // the number of running requests
	reading     []*bodyTimer // of the requests whose bodies have not arrived, the oldest first
	streams     int
	lastRequest int64 // us: the last request
	revoked     bool

	// Only a login has these; Console.mu guards them.
	token     [sha256.Size]byte // the hash of the cookie; the zero value: no login
	createdAt int64             // us; 0: no login
}

// library is the lib-name of the console's sessions in CLIENT LIST.
const library = "ebb-console"

// viewerSession is a session, and the database that it has selected.
type viewerSession struct {
	*session.Session
	db int
}

// The bounds of logins and viewers. Times are in us.
const (
	loginIdle = 30 * 60e6
	loginLife = 12 * 3600e6
	maxLogins = 1000
	// userLogins is the greatest number of logins of one user.
	userLogins  = 100
	idleTimeout = 60e6 // the sessions of a viewer without requests are closed
	// loginPause is the time that the response to a wrong password takes.
	loginPause = 250 * time.Millisecond
)

// maxIdleSessions is the number of idle sessions that a viewer keeps, about 2 KiB each. A browser has six
// connections to a host.
const maxIdleSessions = 6

// borrow returns a session. The caller gives it back with returnSession.
func (v *viewer) borrow() (*viewerSession, error) {
	v.mu.Lock()
	if n := len(v.idle); n > 0 {
		s := v.idle[n-1]
		v.idle = v.idle[:n-1]
		v.mu.Unlock()
		return s, nil
	}
	v.mu.Unlock()
	s := v.svc.NewSessionFor(v.id, v.guest)
	if err := s.Do([]byte("HELLO"), []byte("3")).Err(); err != nil {
		s.Closed(nil)
		return nil, err
	}
	return &viewerSession{Session: s}, nil
}

// returnSession keeps the session for the next borrow, or closes it.
func (v *viewer) returnSession(s *viewerSession) {
	v.mu.Lock()
	keep := !v.revoked && len(v.idle) < maxIdleSessions
	if keep {
		v.idle = append(v.idle, s)
	}
	v.mu.Unlock()
	if !keep {
		s.Closed(nil)
	}
}

// closeIdle closes the idle sessions of the viewer.
func (v *viewer) closeIdle() { v.closeSessions(false) }

// revoke closes the idle sessions of a viewer whose login has ended; borrowed ones are closed when they are returned.
func (v *viewer) revoke() { v.closeSessions(true) }

func (v *viewer) closeSessions(gone bool) {
	v.mu.Lock()
	idle := v.idle
	v.idle, v.revoked = nil, v.revoked || gone
	v.mu.Unlock()
	for _, s := range idle {
		s.Closed(nil)
	}
}

// valid reports whether the login of the viewer is valid. A stream checks it before each event.
func (v *viewer) valid() bool {
	v.mu.Lock()
	gone := v.revoked
	v.mu.Unlock()
	old := v.createdAt > 0 && v.clock.Micros()-v.createdAt > loginLife
	return !gone && !old && v.id.Valid()
}

// noteRequest records a request.
func (v *viewer) noteRequest(now int64) {
	v.mu.Lock()
	v.lastRequest = now
	v.mu.Unlock()
}

// idleSince returns the time of the viewer's last request, us; now if one is running.
func (v *viewer) idleSince(now int64) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.requests > 0 || v.streams > 0 {
		return now
	}
	return v.lastRequest
}

// local reports whether the client of a request is on this machine.
func local(r *http.Request) bool {
	if at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); at != nil && at.Network() == "unix" {
		return true
	}
	return system.LoopbackPeer(r.RemoteAddr)
}

// hostOf returns the host of an address ip:port.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
