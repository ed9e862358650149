package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/queue"
)

// report is the work of one of three workers, which all want the lock of the report. In each
// minute one of them dies while it holds the lock: it neither renews nor releases its lease,
// and another worker gets the lock when the lease ends.
func (s *shop) report(ctx context.Context, worker int) error {
	for turn := 0; ; turn++ {
		life, die := context.WithCancel(ctx)
		lease, err := s.reports[worker].Acquire(life, 0)
		if err != nil {
			die()
			return err
		}
		s.pause(lease.Context(), s.scaled(s.between(3*time.Second, 6*time.Second)))
		if turn%12 == 4*worker+3 { // a worker has the lock each 15 seconds or so, and dies each 3 minutes
			die()
			s.pause(ctx, s.scaled(20*time.Second))
			continue
		}
		err = lease.Release(ctx)
		die()
		if err != nil {
			return err
		}
	}
}

// resize is the work of one of five programs, of which three at a time may resize images.
func (s *shop) resize(ctx context.Context) error {
	return s.every(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		lease, err := s.images.Acquire(ctx, 1, 0)
		if err != nil {
			return err
		}
		s.pause(lease.Context(), s.scaled(s.between(time.Second, 2*time.Second)))
		return lease.Release(ctx)
	})
}

// mail is a job of the mail queue.
type mail struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
}

// errBounce is the error of a mail to an address that does not exist.
var errBounce = errors.New("550 the mailbox does not exist")

func (s *shop) push(ctx context.Context, delay time.Duration) error {
	m := mail{To: s.user() + "@shop.example", Subject: "Your order is on its way"}
	if s.n(30) == 0 {
		m = mail{To: s.user() + "@bounce.example", Subject: "We miss you"}
	}
	_, err := s.mail.Push(ctx, m, queue.PushOptions{Delay: delay})
	return err
}

func (s *shop) fillMail(ctx context.Context) error {
	for i := range 40 {
		if err := s.push(ctx, time.Duration(i)*s.between(0, 3*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

// send pushes two mails a second, half of them for later. It keeps the last hundred dead
// letters.
func (s *shop) send(ctx context.Context) error {
	n := 0
	return s.every(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		if n++; n%600 == 0 {
			dead, err := s.mail.DeadLetters(ctx, 1_000)
			if err != nil {
				return err
			}
			for _, d := range dead[:max(0, len(dead)-100)] {
				if _, err := s.mail.Discard(ctx, d.ID); err != nil {
					return err
				}
			}
		}
		return s.push(ctx, time.Duration(s.n(2))*s.between(time.Second, 30*time.Second))
	})
}

// deliver consumes the mail queue with two workers.
func (s *shop) deliver(ctx context.Context) error {
	return s.mail.Run(ctx, 2, func(ctx context.Context, j *queue.Job[mail]) error {
		s.pause(ctx, s.scaled(s.between(200*time.Millisecond, 600*time.Millisecond)))
		if strings.HasSuffix(j.Value.To, "@bounce.example") {
			return fmt.Errorf("%s: %w", j.Value.To, errBounce)
		}
		return ctx.Err()
	})
}

// backoff is the pause after a failed delivery.
func (s *shop) backoff(n int) time.Duration { return time.Duration(n) * 2 * time.Second }
