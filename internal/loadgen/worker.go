package loadgen

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// worker is one connection's share of a run.
type worker struct {
	r    *run
	id   int
	name string
	conn net.Conn
	in   *bufio.Reader
	req  *request
	rng  *rand.Rand

	follow *follow // nil: none
	out    []byte  // a batch with its tail

	latency    histogram
	errors     int64
	firstError string
}

func newWorker(ctx context.Context, r *run, id int, test Test) (*worker, error) {
	conn, in, err := r.cfg.Target.Dial(ctx)
	if err != nil {
		return nil, err
	}
	batch := r.cfg.Pipeline
	if r.cfg.Rate > 0 {
		batch = maxDue
	}
	req := test.encode(batch, r.cfg.Size)
	return &worker{
		r: r, id: id, name: test.Name, conn: conn, in: in, req: req, follow: newFollow(test.Follow, r.cfg.Size),
		rng: rand.New(rand.NewPCG(r.cfg.Seed, uint64(id))),
	}, nil
}

func (w *worker) work() error {
	if w.r.cfg.Rate > 0 {
		return w.open()
	}
	return w.closed()
}

// closed writes a batch, waits for its replies, and begins again.
func (w *worker) closed() error {
	for {
		n := w.r.take(w.r.cfg.Pipeline)
		if n == 0 {
			return nil
		}
		buf := w.req.batch(n, w.rng, w.r.cfg.Keyspace)
		start := time.Now()
		if err := w.send(buf); err != nil {
			return err
		}
		if w.follow != nil {
			if err := w.pairs(buf, n); err != nil {
				return err
			}
		} else if err := w.replies(n*w.req.replies + min(len(w.req.tail), 1)); err != nil {
			return err
		}
		w.latency.record(time.Since(start), uint64(n))
	}
}

// send writes a batch, and what is behind it.
func (w *worker) send(batch []byte) error {
	if w.req.tail == nil {
		_, err := w.conn.Write(batch)
		return err
	}
	w.out = append(append(w.out[:0], batch...), w.req.tail...)
	_, err := w.conn.Write(w.out)
	return err
}

func (w *worker) replies(n int) error {
	for range n {
		if err := w.reply(); err != nil {
			return err
		}
	}
	return nil
}

// pairs reads the replies to the n requests of buf, sends the second requests, and reads
// their replies.
func (w *worker) pairs(buf []byte, n int) error {
	f := w.follow
	f.out = f.out[:0]
	second := 0
	for i := range n {
		if err := f.read(w.in); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		var number []byte
		if len(w.req.numbers) > 0 {
			at := i*w.req.size + w.req.numbers[0]
			number = buf[at : at+digits]
		}
		switch {
		case f.failed:
			if w.errors++; w.firstError == "" {
				w.firstError = f.text()
			}
		case f.add(number):
			second++
		default: // another client has taken the item
		}
	}
	if second == 0 {
		return nil
	}
	if _, err := w.conn.Write(f.out); err != nil {
		return err
	}
	return w.replies(second)
}

// maxDue bounds a batch of the open loop: after a stall longer than this many
// periods, what is due goes out in several writes.
const maxDue = 64

// open writes each request when it is due, whether or not earlier ones have
// been answered; a second goroutine reads. When more than outstanding requests
// wait, the writer waits too: their latency still counts from when they were
// due.
func (w *worker) open() error {
	const outstanding = 1 << 16
	due := make(chan time.Time, outstanding)
	failed := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		failed <- w.readDue(due)
	}()
	err := w.writeDue(due, stop)
	close(due)
	if err != nil {
		w.conn.Close()
	}
	if readErr := <-failed; err == nil {
		err = readErr
	}
	return err
}

// writeDue sends requests at this worker's share of the rate: of all workers'
// turns, every Clients-th is its own.
func (w *worker) writeDue(due chan<- time.Time, stop <-chan struct{}) error {
	p := newPacer()
	defer p.close()
	period := float64(time.Second) / w.r.cfg.Rate
	turn := w.id
	at := func() time.Time { return w.r.start.Add(time.Duration(float64(turn) * period)) }
	for {
		p.until(at())
		now := time.Now()
		n := 0
		for next := at(); n < maxDue && !next.After(now); next = at() {
			if !w.r.end.IsZero() && !next.Before(w.r.end) || w.r.cfg.Requests > 0 && turn >= w.r.cfg.Requests {
				break
			}
			select {
			case due <- next:
			case <-stop:
				return nil // the reader knows why
			}
			n++
			turn += w.r.cfg.Clients
		}
		if n == 0 {
			return nil
		}
		if _, err := w.conn.Write(w.req.batch(n, w.rng, w.r.cfg.Keyspace)); err != nil {
			return err
		}
	}
}

// readDue reads a reply for each time that comes, until there are no more.
func (w *worker) readDue(due <-chan time.Time) error {
	for at := range due {
		if err := w.reply(); err != nil {
			return err
		}
		w.latency.record(time.Since(at), 1)
	}
	return nil
}

// reply skips one reply and counts it if it is an error.
func (w *worker) reply() error {
	msg, err := SkipReply(w.in)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	if msg != "" {
		w.errors++
		w.firstError = cmp.Or(w.firstError, msg)
	}
	return nil
}
