package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// pages are the files of the pages. They are served as they are in the repository, without a build step. The
// types of ui/lib/*.d.ts are for checks and editors (.ci/test ui), and are not served.
//
//go:embed ui/index.html ui/app.css ui/favicon.svg ui/*.js ui/lib/*.js ui/cards ui/screens ui/i18n
var pages embed.FS

// types are the media types of the files. The console does not ask the system, whose table may be wrong.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml"}

// serveUI serves a file of the pages. It needs no login: the files contain no data. A browser asks at each
// load whether its copy is current.
func (c *Console) serveUI(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the pages answer only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	name = cmp.Or(name, "index.html")
	kind := types[path.Ext(name)]
	body, err := pages.ReadFile("ui/" + name)
	if err != nil || kind == "" {
		http.Error(w, "the console has no such page", http.StatusNotFound)
		return
	}
	sum := sha256.Sum256(body)
	tag := hex.EncodeToString(sum[:16])
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = c.zipped(name, body), tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	tag = `"` + tag + `"`
	h.Set("Content-Type", kind)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body) // the client may be gone
}

// takesGzip reports whether a client accepts the encoding gzip, by its header Accept-Encoding.
func takesGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, q, _ := strings.Cut(weight, "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return err != nil || n > 0
		}
	}
	return false
}

// zipped returns a file in the encoding gzip, which all browsers accept: a third of its bytes. The console
// compresses it once.
func (c *Console) zipped(name string, body []byte) []byte {
	if had, ok := c.zips.Load(name); ok {
		return had.([]byte)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body) // a bytes.Buffer does not fail
	_ = z.Close()
	made, _ := c.zips.LoadOrStore(name, b.Bytes())
	return made.([]byte)
}
