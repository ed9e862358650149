package adminhttp

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// headlines are the titles of the pages that refuse a request.
var headlines = map[int]string{
	http.StatusForbidden:          "The server refuses this request",
	http.StatusMisdirectedRequest: "The server does not have this name",
}

// Refuse answers a request that is refused, with the reason in the form that the client reads: a page for a browser that opens an
// address, JSON for a request to an API, that is one below api/, and else a line of text.
func Refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	switch {
	case ofAPI(r.URL.Path):
		body, err := json.Marshal(map[string]string{"error": why})
		if err != nil { // a string is always JSON
			body = nil
		}
		h.Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(body)
	case strings.Contains(r.Header.Get("Accept"), "text/html"):
		headline := headlines[status]
		if headline == "" {
			headline = http.StatusText(status)
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		if r.Method == http.MethodHead {
			return
		}
		// The policy of this server allows no style here, and the style sheet would be refused too.
		page := fmt.Sprintf("<!DOCTYPE html>\n<html lang=\"en\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
			"<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s</title>\n<h1>%s</h1>\n<p>%s.</p>\n",
			html.EscapeString(headline), html.EscapeString(headline), html.EscapeString(sentence(why)))
		if status == http.StatusMisdirectedRequest {
			page += "<p>The browser asked for <code>" + html.EscapeString(strconv.QuoteToASCII(r.Host)) + "</code>.</p>\n"
		}
		_, _ = io.WriteString(w, page)
	default:
		http.Error(w, why, status)
	}
}

// ofAPI reports whether a path is one of an API.
func ofAPI(path string) bool {
	return strings.HasPrefix(path, "api/") || strings.Contains(path, "/api/")
}

// sentence begins a text with a capital, and takes the full stop at its end away.
func sentence(s string) string {
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
