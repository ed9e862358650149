package console

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// forbidden matches what no page may contain: text that a browser parses as HTML or runs, and addresses of
// other sites.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|\beval\(|new Function|document\.write|createContextualFragment|` +
	`<[a-z][^>\n]*\son[a-z]+=|javascript:|https?://|<script>|<style|\sstyle="`)

func TestThePagesHaveNoForbiddenWord(t *testing.T) {
	tier.Sequential(t)
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
		// the name of the namespace of SVG is not an address
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

// A browser learns the imports of a module only when it has the module. The page lists all modules that
// app.js needs, so that they load together.
func TestThePageNamesTheModulesThatItBeginsWith(t *testing.T) {
	read := func(name string) string {
		text, err := pages.ReadFile("ui/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	imports := regexp.MustCompile(`(?m)^(?:import|export)\b[^'";]*?\bfrom '([^']+)'|^import '([^']+)'`)
	needed := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		for _, m := range imports.FindAllStringSubmatch(read(name), -1) {
			if next := path.Join(path.Dir(name), m[1]+m[2]); !needed[next] {
				needed[next] = true
				follow(next)
			}
		}
	}
	follow("app.js")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`<link rel="modulepreload" href="([^"]+)">`).FindAllStringSubmatch(read("index.html"), -1) {
		named[m[1]] = true
	}
	if len(needed) < 10 || !maps.Equal(needed, named) {
		t.Errorf("index.html names %v; app.js needs %v", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(needed)))
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

// The server sends the meaning of a directive, the reason why it is unused, and its valid values in English.
// The console translates each by its text, or by a pattern with *. So a text that changes has no translation
// until its line in config.zh.json changes too.
func TestEveryDirectiveHasAChineseMeaning(t *testing.T) {
	var words map[string]string
	text, err := pages.ReadFile("ui/i18n/config.zh.json")
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	translated := func(s string) bool {
		if words[s] != "" {
			used[s] = true
			return true
		}
		matches := false // of several patterns, such as "from *" and "from * to *", the page takes the first
		for from := range words {
			parts := strings.Split(from, "*")
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			if len(parts) > 1 && regexp.MustCompile("^"+strings.Join(parts, "(.+)")+"$").MatchString(s) {
				used[from], matches = true, true
			}
		}
		return matches
	}
	for _, d := range config.Directives() {
		for _, s := range []string{d.Doc, d.Unused, d.Usage()} {
			if s != "" && !translated(s) {
				t.Errorf("config.zh.json does not have %q of %s", s, d.Name)
			}
		}
	}
	given, err := config.Load([]string{"--timeout", "5"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range given.Settings() {
		if s.Name == "timeout" && !translated(s.Where) {
			t.Errorf("config.zh.json does not have %q, where a directive was given", s.Where)
		}
	}
	for from, to := range words {
		if !used[from] {
			t.Errorf("config.zh.json has %q, which no directive says", from)
		}
		if n := strings.Count(from, "*"); n != len(regexp.MustCompile(`\$[1-9]`).FindAllString(to, -1)) {
			t.Errorf("config.zh.json: %q has %d parts, %q has others", from, n, to)
		}
		if !regexp.MustCompile(`\p{Han}`).MatchString(to) {
			t.Errorf("config.zh.json: %q is not Chinese", to)
		}
	}
	if len(used) < 100 {
		t.Errorf("%d texts", len(used))
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
	r := b.request("GET", "app.js", "")
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := pages.ReadFile("ui/app.js")
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("app.js in gzip: %v %v", err, w.Header())
	}
	for header, want := range map[string]bool{"": false, "br, gzip": true, "GZIP;q=0.5": true, "br, gzip; q=0": false, "gzip;q=0.0": false,
		"xgzip": false} {
		if got := takesGzip(header); got != want {
			t.Errorf("%q takes gzip: %v", header, got)
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

// The files of the user interface are read as source: no step builds them.
func TestLinesOfTheUserInterfaceFitTheScreen(t *testing.T) {
	const limit = 140
	err := fs.WalkDir(pages, "ui", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".js") && !strings.HasSuffix(path, ".css") {
			return err
		}
		text, err := fs.ReadFile(pages, path)
		n := 0
		for line := range strings.Lines(string(text)) {
			if n++; utf8.RuneCountInString(strings.TrimRight(line, "\n")) > limit {
				t.Errorf("%s:%d has more than %d columns: %.80s", path, n, limit, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A key that occurs twice in a file of texts would hide its first text.
func TestEachTextHasAKeyOfItsOwn(t *testing.T) {
	key := regexp.MustCompile(`(?:^|[,{\n]\s*)"([a-z][A-Za-z0-9.-]*)":`)
	for _, name := range []string{"ui/i18n/en.json", "ui/i18n/zh.json"} {
		text, err := pages.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var words map[string]string
		if err := json.Unmarshal(text, &words); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range key.FindAllStringSubmatch(string(text), -1) {
			if seen[m[1]] {
				t.Errorf("%s has %s twice", name, m[1])
			}
			seen[m[1]] = true
		}
		if len(seen) != len(words) {
			t.Errorf("%s: %d keys were looked at, of %d", name, len(seen), len(words))
		}
	}
}
