package sentinel

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
)

const (
	// maxClients is the largest number of connections. A client keeps one, or asks and disconnects.
	maxClients = 1024
	// maxSubscribers is the number of clients that may subscribe, and then stay silent. If there is no room for a new
	// connection, the one that has been silent for the longest time is closed, unless it has subscribed. So idle
	// connections keep no client from asking.
	maxSubscribers = maxClients / 4 * 3
	// maxSilence is the time after which a silent client that has not subscribed is disconnected. Client libraries
	// connect again.
	maxSilence = time.Minute
	// maxRequest limits the bytes of an incomplete request: requests have a few words.
	maxRequest = 16 << 10
	// maxQueued limits the answers and messages that wait for a client. A client that reads too slowly is
	// disconnected.
	maxQueued = 64
	// readSize is the number of bytes of one read.
	readSize = 4 << 10
)

// Options configure a Service. Recover and Logger are optional.
type Options struct {
	Listeners []net.Listener // the Service closes them
	View      func() View    // called often, and concurrently; it does not block
	Access    Access
	// Failover begins to promote a replica and returns at once. It returns ErrNoReplica, ErrUnderWay or another
	// error.
	Failover func(context.Context) error
	// Recover makes the server at an address the master although it may lack acknowledged writes.
	Recover  func(ctx context.Context, address string) error
	Version  string        // the Redis version that clients are told
	Period   time.Duration // between two checks for events
	Patience time.Duration // the time limit of a write to a client, and of a slow command
	Logger   *slog.Logger  // nil: none
}

// Service serves clients. The caller closes it.
type Service struct {
	opt    Options
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	subscribers atomic.Int64
	turn        atomic.Int64 // counts connections and requests; orders them by age

	mu     sync.Mutex // guards the fields below
	conns  map[*conn]struct{}
	lastID int64
}

// conn is the connection of a client.
type conn struct {
	net.Conn
	out   chan []byte  // bytes for its writer; its reader closes it
	turn  atomic.Int64 // the value of Service.turn at its newest request
	stays atomic.Bool  // it has subscribed, and may stay silent

	mu sync.Mutex // guards the fields below
	client
	full bool // the client reads too slowly, or has ended: nothing more is written
}

// Serve starts to serve clients.
func Serve(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{opt: o, conns: map[*conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, l := range o.Listeners {
		s.done.Go(func() { s.accept(l) })
	}
	s.done.Go(s.look)
	return s
}

// Close closes the service and its connections, and waits for its goroutines.
func (s *Service) Close() error {
	s.cancel()
	var err error
	for _, l := range s.opt.Listeners {
		err = errors.Join(err, l.Close())
	}
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
	return err
}

// accept accepts connections until the service is closed.
func (s *Service) accept(l net.Listener) {
	for {
		raw, err := l.Accept()
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				raw.Close()
			}
			return
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.opt.Logger.Warn("cannot accept a client of Sentinel's protocol", "error", err)
			if !s.sleep() {
				return
			}
			continue
		}
		c := &conn{Conn: raw, out: make(chan []byte, maxQueued), client: client{opt: &s.opt, subscribers: &s.subscribers,
			addr: raw.RemoteAddr().String()}}
		if !s.add(c) {
			raw.Close()
			continue
		}
		s.done.Go(func() { s.read(c) })
		s.done.Go(func() { s.write(c) })
	}
}

// add records a connection, and makes room for it if necessary. It reports false if there is no room.
func (s *Service) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.conns) >= maxClients && !s.makeRoom() {
		return false
	}
	s.lastID++
	c.id = s.lastID
	c.turn.Store(s.turn.Add(1))
	s.conns[c] = struct{}{}
	return true
}

// makeRoom closes the connection that has been silent for the longest time, subscribers excepted. It reports false if
// all have subscribed. mu is held.
func (s *Service) makeRoom() bool {
	var oldest *conn
	for c := range s.conns {
		if !c.stays.Load() && (oldest == nil || c.turn.Load() < oldest.turn.Load()) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	delete(s.conns, oldest)
	oldest.Close()
	return true
}

// sleep waits for Period. It reports false when the service is closed.
func (s *Service) sleep() bool {
	t := time.NewTimer(s.opt.Period)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// read runs a client's requests until its connection ends.
func (s *Service) read(c *conn) {
	defer s.end(c)
	if why := s.opt.Access.Denied(); why != "" && !isLocal(c.Conn) {
		c.say(func() { c.w.Error(why) })
		return
	}
	silent := time.AfterFunc(maxSilence, func() {
		if !c.stays.Load() {
			c.Close()
		}
	})
	defer silent.Stop()
	p := wire.Parser{Limits: wire.Limits{MaxBulk: maxRequest, MaxArgs: maxChannels + 1, MaxInline: maxRequest}}
	var buf []byte
	for {
		args, n, err := p.Next(buf)
		if err != nil {
			c.say(func() { c.w.Error("ERR " + err.Error()) })
			return
		}
		if n == 0 {
			if len(buf) > maxRequest {
				return
			}
			buf = append(buf, make([]byte, readSize)...)
			got, err := c.Read(buf[len(buf)-readSize:])
			if buf = buf[:len(buf)-readSize+got]; err != nil {
				return
			}
			continue
		}
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = string(a)
		}
		buf = buf[n:]
		if len(words) == 0 {
			continue
		}
		if w := strings.ToLower(words[0]); w == "post" || w == "host:" {
			s.opt.Logger.Warn("a client of Sentinel's protocol speaks HTTP: it may be a page that a browser shows; its connection is closed")
			return
		}
		silent.Reset(maxSilence)
		c.turn.Store(s.turn.Add(1))
		if !c.say(func() { c.run(words); c.stays.Store(c.subscribed()) }) || !s.finish(c) {
			return
		}
	}
}

// end removes a connection and ends its writer.
func (s *Service) end(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.out)
	c.full = true // makes publish skip it
	if c.subscribed() {
		s.subscribers.Add(-1)
	}
}

// finish runs the slow part of a command without the client's lock, so events can be published to it meanwhile.
func (s *Service) finish(c *conn) bool {
	c.mu.Lock()
	later := c.later
	c.later = nil
	c.mu.Unlock()
	if later == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.opt.Patience)
	err := later(ctx)
	cancel()
	return c.say(func() { c.answer(err) })
}

// say calls a function that appends replies, and passes them to the writer. It reports false when the connection must
// end.
func (c *conn) say(something func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	something()
	return c.flush() && !c.quit
}

// flush passes the appended replies to the writer. It closes the connection if the client reads too slowly.
func (c *conn) flush() bool {
	if c.full || len(c.w.Buf) == 0 {
		return !c.full
	}
	select {
	case c.out <- c.w.Buf:
		c.w.Buf = nil
		return true
	default:
		c.full = true
		c.Close()
		return false
	}
}

// write writes replies and messages to a client, each within Patience. It closes the connection after the last one.
func (s *Service) write(c *conn) {
	defer c.Close()
	for b := range c.out {
		late := time.AfterFunc(s.opt.Patience, func() { c.Close() })
		_, err := c.Write(b)
		late.Stop()
		if err != nil {
			c.Close()
		}
	}
}

// look publishes the changes of the view, once per Period, until the service is closed.
func (s *Service) look() {
	old := s.opt.View()
	for s.sleep() {
		now := s.opt.View()
		all := events(old, now)
		if now.Master.Host != "" {
			old = now
		}
		if len(all) > 0 {
			s.publish(all)
		}
	}
}

func (s *Service) publish(all []event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.mu.Lock()
		switch {
		case c.full:
		case c.subscribed() && c.as() == nil: // its user was removed or has a new password
			c.full = true
			c.Close()
		default:
			for _, e := range all {
				c.client.publish(e)
			}
			c.flush()
		}
		c.mu.Unlock()
	}
}
