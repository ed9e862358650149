// Command idempotent-payment runs a payment once, although its client sends it several times, to two
// programs, and loses the first response.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

func main() { example.Main(run) }

// bank is a service that may not be called twice.
type bank struct {
	charges atomic.Int64
	begun   chan struct{} // gets a value when a charge begins
	goOn    chan struct{} // ends the first charge
}

// charge takes the money.
func (b *bank) charge(w http.ResponseWriter, r *http.Request) {
	amount, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := b.charges.Add(1)
	b.begun <- struct{}{}
	<-b.goOn
	w.Header().Set("Location", fmt.Sprint("/payments/", n))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "payment %d of %s", n, amount)
}

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	say := func(format string, args ...any) { fmt.Fprintf(w, "  "+format+"\n", args...) }
	once, err := lock.NewOnceValue[httpidem.Response](c, "payments", time.Hour)
	if err != nil {
		return err
	}
	say("%s", once)
	b := &bank{begun: make(chan struct{}, 1), goOn: make(chan struct{})}
	user := func(r *http.Request) string { return r.Header.Get("X-User") } // whom the API has authenticated
	idempotent := httpidem.New(once, httpidem.Options{Scope: user, Required: true})
	first := httptest.NewServer(idempotent(http.HandlerFunc(b.charge)))
	defer first.Close()
	second := httptest.NewServer(idempotent(http.HandlerFunc(b.charge)))
	defer second.Close()

	// The client loses its connection while the first program charges the card.
	cut, cancel := context.WithCancel(ctx)
	lost := make(chan error, 1)
	go func() {
		_, err := pay(cut, first, "ann", "7 EUR")
		lost <- err
	}()
	<-b.begun
	cancel()
	if err := <-lost; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the first request ended with %w", err)
	}
	say("the client loses its connection, and does not know whether it has paid")

	// It repeats the request until it has a response.
	reply, err := pay(ctx, second, "ann", "7 EUR")
	if err != nil {
		return err
	}
	say("while the first program still works, the second one replies: %s", reply)
	close(b.goOn)
	for strings.HasPrefix(reply, "409") {
		if reply, err = pay(ctx, second, "ann", "7 EUR"); err != nil {
			return err
		}
	}
	say("then: %s", reply)
	for _, who := range []struct{ user, amount string }{{"ann", "8 EUR"}, {"bob", "7 EUR"}} {
		if reply, err = pay(ctx, second, who.user, who.amount); err != nil {
			return err
		}
		say("the same key for %s of %s: %s", who.amount, who.user, reply)
	}
	say("cards were charged %d times", b.charges.Load())

	// The example leaves nothing behind; a program lets the responses expire.
	return forget(ctx, c, "payments")
}

// pay sends a payment with the key of an order, and describes the response.
func pay(ctx context.Context, s *httptest.Server, user, amount string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(amount))
	if err != nil {
		return "", err
	}
	r.Header.Set("Idempotency-Key", `"order-4711"`)
	r.Header.Set("X-User", user)
	resp, err := s.Client().Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	text := string(body)
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Title string }
		if err := json.Unmarshal(body, &p); err != nil {
			return "", err
		}
		text = p.Title
	}
	if resp.Header.Get("Idempotent-Replayed") != "" {
		text += " (replayed)"
	}
	return fmt.Sprint(resp.StatusCode, ", ", text), nil
}

// forget removes the keys of a OnceValue.
func forget(ctx context.Context, c *ebb.Conn, name string) error {
	for key, err := range c.Scan(ctx, "{"+name+":*") {
		if err != nil {
			return err
		}
		if _, err := c.Del(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
