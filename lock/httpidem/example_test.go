package httpidem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

func ExampleNew() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://") // or redis://, and one store for all programs
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	once, err := lock.NewOnceValue[httpidem.Response](c, "payments", 24*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	idempotent := httpidem.New(once, httpidem.Options{
		Scope:    func(r *http.Request) string { return r.Header.Get("X-User") }, // the user that the API has authenticated
		Required: true,
	})
	payments := 0
	server := httptest.NewServer(idempotent(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	})))
	defer server.Close()

	for _, amount := range []string{"7", "7", "8"} {
		fmt.Println(pay(ctx, server, amount))
	}
	// Output:
	// 201 payment 1
	// 201 payment 1, replayed
	// 422 Idempotency-Key is already used
}

func pay(ctx context.Context, s *httptest.Server, amount string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("amount="+amount))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Idempotency-Key", `"order-1"`)
	r.Header.Set("X-User", "ann")
	resp, err := s.Client().Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	text := string(body)
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Title string }
		if err := json.Unmarshal(body, &p); err != nil {
			return err.Error()
		}
		text = p.Title
	}
	if resp.Header.Get("Idempotent-Replayed") != "" {
		text += ", replayed"
	}
	return fmt.Sprint(resp.StatusCode, " ", text)
}
