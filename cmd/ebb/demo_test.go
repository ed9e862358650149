package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestTheDemoServesTheConsoleUntilItsContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := runDemo(ctx, demoOptions{speed: 10, seed: 1}, w) // no port for clients, and a free one for the console
		_ = w.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(r)
	address := ""
	for address == "" && lines.Scan() {
		address, _ = strings.CutPrefix(lines.Text(), "console: ")
		if !strings.HasPrefix(address, "http://") {
			address = ""
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	resp, err := http.Get(address + "console/api/limits") //nolint:noctx // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "api:ann") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTheDemoRefusesABadSpeed(t *testing.T) {
	if err := runDemo(t.Context(), demoOptions{speed: -1}, io.Discard); err == nil || !strings.Contains(err.Error(), "speed") {
		t.Error(err)
	}
}
