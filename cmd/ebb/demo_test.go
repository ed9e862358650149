package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// runningDemo runs ebb demo until the test ends. It returns the printed lines up to the console's address, and that
// address.
func runningDemo(t *testing.T, o demoOptions) (printed, address string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := runDemo(ctx, o, w) // no port for clients, and a free port for the console
		_ = w.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(r)
	for address == "" && lines.Scan() {
		printed += lines.Text() + "\n"
		if i := strings.Index(lines.Text(), "http://"); i >= 0 {
			address = lines.Text()[i:]
		}
	}
	drained := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, r)
		close(drained)
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-drained
	})
	return printed, address
}

// fetch returns the status and the body of a page.
func fetch(t *testing.T, address string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(address) //nolint:noctx,gosec // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestTheDemoServesTheConsoleUntilItsContextEnds(t *testing.T) {
	printed, address := runningDemo(t, demoOptions{port: "0", http: "127.0.0.1:0", speed: 10, seed: 1})
	if status, body := fetch(t, address+"console/api/limits"); status != http.StatusOK || !strings.Contains(body, "api:ann") {
		t.Errorf("%d %s", status, body)
	}
	if !strings.Contains(printed, "console: http://127.0.0.1:") {
		t.Errorf("ebb demo printed %q", printed)
	}
}

func TestTheDemoSpeaksChinese(t *testing.T) {
	printed, address := runningDemo(t, demoOptions{port: "0", http: "127.0.0.1:0", speed: 10, seed: 1, lang: "zh"})
	if !strings.Contains(printed, "控制台：http://127.0.0.1:") || strings.Contains(printed, "console:") {
		t.Errorf("ebb demo printed %q", printed)
	}
	page, chinese := strings.CutSuffix(address, "/console/?lang=zh")
	if !chinese {
		t.Errorf("the address is %q", address)
	}
	if status, body := fetch(t, address); status != http.StatusOK || !strings.Contains(body, "<html") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := fetch(t, page+"/console/api/me"); status != http.StatusOK || !strings.Contains(body, "演示") {
		t.Errorf("the badge is not Chinese: %d %s", status, body)
	}
}

func TestEveryLanguageOfTheDemoHasAllLines(t *testing.T) {
	for lang, w := range demoLanguages {
		if w.label == "" || w.end == "" || w.stopped == "" || strings.Count(w.server, "%s") != 1 || strings.Count(w.console, "%s") != 1 {
			t.Errorf("%s: %+v", lang, w)
		}
	}
}

func TestTheDemoTakesTheNextFreePorts(t *testing.T) {
	var port int
	var ln net.Listener
	for ln == nil {
		var addr string
		var err error
		if port, addr, err = freePort(26_000); err != nil {
			t.Fatal(err)
		}
		ln, _ = net.Listen("tcp", addr) // another program may have taken the port
	}
	defer ln.Close()
	if next, _, err := freePort(port); err != nil || next <= port {
		t.Errorf("with %d taken: %d, %v", port, next, err)
	}
	var o demoOptions
	if err := o.choosePorts(); err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(o.port); err != nil || n < 6379 || n > 6388 || !strings.HasPrefix(o.http, "127.0.0.1:91") {
		t.Errorf("%+v", o)
	}
	chosen := demoOptions{port: "0", http: "26002"}
	if err := chosen.choosePorts(); err != nil || chosen.port != "0" || chosen.http != "26002" {
		t.Errorf("%+v, %v", chosen, err)
	}
}

func TestTheDemoRefusesALanguageThatItDoesNotHave(t *testing.T) {
	if err := runDemo(t.Context(), demoOptions{lang: "fr"}, io.Discard); err == nil ||
		!strings.Contains(err.Error(), `"fr"; want one of en, zh`) {
		t.Error(err)
	}
}

func TestTheDemoRefusesABadSpeed(t *testing.T) {
	if err := runDemo(t.Context(), demoOptions{speed: -1}, io.Discard); err == nil || !strings.Contains(err.Error(), "speed") {
		t.Error(err)
	}
}

func TestTheDemoNeedsItsConsole(t *testing.T) {
	if err := runDemo(t.Context(), demoOptions{http: "0"}, io.Discard); err == nil || !strings.Contains(err.Error(), "turns the console off") {
		t.Errorf("%v", err)
	}
}
