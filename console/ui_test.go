package console

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// forbidden is what no page may have: text that a browser parses as HTML or runs, and addresses of others.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function|document\.write|createContextualFragment|` +
	`<[a-z][^>\n]*\son[a-z]+=|javascript:|https?://|<script>|<style|\sstyle="`)

func TestThePagesHaveNoForbiddenWord(t *testing.T) {
	files, bytes := 0, 0
	err := fs.WalkDir(pages, "ui", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := pages.ReadFile(name)
		if err != nil {
			return err
		}
		files, bytes = files+1, bytes+len(text)
		// the name of the namespace of SVG is no address
		clean := strings.ReplaceAll(string(text), `xmlns="http://www.w3.org/2000/svg"`, "")
		for i, line := range strings.Split(clean, "\n") {
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("%s:%d has %q", name, i+1, found)
			}
		}
		return nil
	})
	if err != nil || files < 15 {
		t.Fatalf("%d files, %v", files, err)
	}
	for _, bad := range []string{`<a onclick="x">`, `e.innerHTML = x`, `eval(x)`, `src="https://cdn"`, `<script>x`} {
		if !forbidden.MatchString(bad) {
			t.Errorf("%s passes", bad)
		}
	}
}

func TestBothLanguagesHaveTheSameWords(t *testing.T) {
	read := func(name string) (words map[string]string) {
		text, err := pages.ReadFile("ui/i18n/" + name)
		if err == nil {
			err = json.Unmarshal(text, &words)
		}
		if err != nil {
			t.Fatal(err)
		}
		return words
	}
	en, zh := read("en.json"), read("zh.json")
	for key := range en {
		if zh[key] == "" {
			t.Errorf("zh.json has no %s", key)
		}
	}
	for key := range zh {
		if en[key] == "" {
			t.Errorf("en.json has no %s", key)
		}
	}
	if len(en) < 50 {
		t.Errorf("%d words", len(en))
	}
}

func TestThePagesAreServedOnce(t *testing.T) {
	b := newBench(t, Options{})
	for path, kind := range map[string]string{"": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8",
		"i18n/zh.json": "application/json", "favicon.svg": "image/svg+xml"} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, b.request("GET", path, ""))
		tag := w.Header().Get("ETag")
		if w.Code != 200 || w.Header().Get("Content-Type") != kind || tag == "" || w.Body.Len() == 0 {
			t.Errorf("%q: %d %v", path, w.Code, w.Header())
		}
		r := b.request("GET", path, "")
		r.Header.Set("If-None-Match", tag)
		w = httptest.NewRecorder()
		if b.ServeHTTP(w, r); w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("%q again: %d", path, w.Code)
		}
	}
	for _, path := range []string{"nosuch", "lib", "lib/", "../ui.go", "ui/app.js", "..%2fui.go"} {
		if status, _ := b.ask("GET", path, ""); status != 404 {
			t.Errorf("%q: %d", path, status)
		}
	}
	if status, _ := b.ask("POST", "", "{}"); status != 405 {
		t.Errorf("POST: %d", status)
	}
}
