package httpidem

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ebbdb/ebb/conn"
)

// Response is the record of a request and its response.
type Response struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"-"`
	// Omitted says that there is no response to repeat: it was too large, or the handler took over the
	// connection.
	Omitted bool `json:"omitted,omitempty"`
	// Request is the fingerprint of the request that was answered.
	Request Fingerprint `json:"request"`
}

// Fingerprint distinguishes a request from others. It consists of hashes (SHA-256), so that the kept record
// contains no part of the request.
type Fingerprint struct {
	Target []byte `json:"target"`         // of the method, the path and the query
	Body   []byte `json:"body"`           // of the body's first Size bytes
	Size   int64  `json:"size"`           // of the body
	Part   bool   `json:"part,omitempty"` // the client sent more, or did not send the rest
}

// plain is a Response without its text methods, for encoding/json.
type plain Response

// stored is the JSON line of a Response.
type stored struct {
	plain
	Raw map[string][][]byte `json:"raw,omitempty"` // the fields with a value that is not UTF-8
}

// MarshalText makes a line of JSON without the body, followed by the unencoded body, which so takes no more
// space than its length.
func (v Response) MarshalText() ([]byte, error) {
	s := stored{plain: plain(v)}
	for name, values := range v.Header {
		if !slices.ContainsFunc(values, func(value string) bool { return !utf8.ValidString(value) }) {
			continue
		}
		if s.Raw == nil {
			s.Raw, s.Header = map[string][][]byte{}, v.Header.Clone()
		}
		for _, value := range values {
			s.Raw[name] = append(s.Raw[name], []byte(value))
		}
		delete(s.Header, name)
	}
	head, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), v.Body...), nil
}

// UnmarshalText reads the output of MarshalText.
func (v *Response) UnmarshalText(data []byte) error {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return fmt.Errorf("%w: the kept response has no line of JSON", conn.ErrValue)
	}
	var s stored
	if err := json.Unmarshal(head, &s); err != nil {
		return fmt.Errorf("%w: the kept response: %w", conn.ErrValue, err)
	}
	*v = Response(s.plain)
	for name, values := range s.Raw {
		if v.Header == nil {
			v.Header = http.Header{}
		}
		for _, value := range values {
			v.Header[name] = append(v.Header[name], string(value))
		}
	}
	v.Body = bytes.Clone(body)
	return nil
}

// hashed is the body of a request; it hashes the bytes that the handler reads.
type hashed struct {
	body io.Reader // http.MaxBytesReader
	sum  hash.Hash
	n    int64
	err  error // the error that ended the body
}

func newHashed(w http.ResponseWriter, r *http.Request, limit int64) *hashed {
	b := &hashed{body: http.NoBody, sum: sha256.New()}
	if r.Body != nil {
		b.body = http.MaxBytesReader(w, r.Body, limit)
	}
	return b
}

// Read implements io.Reader.
func (b *hashed) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.sum.Write(p[:n])
	b.n += int64(n)
	if err != nil {
		b.err = err
	}
	return n, err
}

// Close implements io.Closer. The rest of the body is read later, and net/http closes it.
func (b *hashed) Close() error { return nil }

// broken reports whether the handler did not get the whole body, because the client or the connection ended
// or the body was too large: the response then does not answer the whole request.
func (b *hashed) broken() bool { return b.err != nil && !errors.Is(b.err, io.EOF) }

// fingerprint reads the rest of the body that the handler left. If the client sent only a part, the hash
// covers that part.
func (x *exchange) fingerprint() Fingerprint {
	_, err := io.Copy(io.Discard, x.body)
	return Fingerprint{Target: target(x.r), Body: x.body.sum.Sum(nil), Size: x.body.n, Part: err != nil}
}

func target(r *http.Request) []byte {
	sum := sha256.Sum256([]byte(r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery))
	return sum[:]
}

// same reports whether the request has the fingerprint f. It reads only as much of the body as that needs.
func (x *exchange) same(f Fingerprint) (bool, error) {
	if !bytes.Equal(f.Target, target(x.r)) {
		return false, nil
	}
	var err error
	if f.Part {
		_, err = io.CopyN(io.Discard, x.body, f.Size)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
	} else {
		_, err = io.Copy(io.Discard, x.body)
	}
	return err == nil && x.body.n == f.Size && bytes.Equal(x.body.sum.Sum(nil), f.Body), err
}

// kept returns the record of the response.
func (x *exchange) kept() Response {
	v := Response{Status: x.rec.status, Omitted: x.rec.omitted, Request: x.fingerprint()}
	if !v.Omitted {
		v.Header, v.Body = x.rec.kept(x.opt.KeepCookies), x.rec.body.Bytes()
	}
	return v
}

// replay answers a request from the kept response of its key.
func (x *exchange) replay(v Response) {
	same, err := x.same(v.Request)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		x.refuse(x.w, x.r, Problem{Status: http.StatusRequestEntityTooLarge, Title: "The request is too large",
			Detail: fmt.Sprintf("The body has more than the %d bytes that it may have with an Idempotency-Key.", tooLarge.Limit)})
	case err != nil:
		x.refuse(x.w, x.r, Problem{Status: http.StatusBadRequest, Title: "The request is incomplete", Detail: "Its body could not be read to the end."})
	case !same:
		x.refuse(x.w, x.r, Problem{Status: http.StatusUnprocessableEntity, Title: "Idempotency-Key is already used",
			Detail: "Another request, with another method, path, query or body, has this Idempotency-Key. Use a new key for a new operation."})
	case v.Omitted:
		x.refuse(x.w, x.r, Problem{Status: http.StatusConflict, Title: "The response cannot be repeated",
			Detail: "The request with this Idempotency-Key was processed, and its response was not kept. It is not processed again."})
	default:
		h := x.w.Header()
		for name, values := range v.Header {
			h[name] = values
		}
		h.Set("Idempotent-Replayed", "true")
		if hasBody(v.Status) {
			h.Set("Content-Length", strconv.Itoa(len(v.Body)))
		}
		x.w.WriteHeader(v.Status)
		if hasBody(v.Status) {
			_, _ = x.w.Write(v.Body) // the client has gone: it may repeat the request
		}
	}
}

// hasBody reports whether a response with a status may have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// refuse answers a request with a problem.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, p Problem) {
	p.Docs = h.opt.Docs
	h.opt.Refuse(w, r, p)
}

// WriteProblem answers a request with problem details (RFC 9457), application/problem+json. It is the default of
// Options.Refuse.
func WriteProblem(w http.ResponseWriter, _ *http.Request, p Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	details := struct {
		Type   string `json:"type,omitempty"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{p.Docs, p.Title, p.Status, p.Detail}
	if p.Docs != "" {
		h.Add("Link", "<"+p.Docs+`>; rel="describedby"; type="text/html"`)
	}
	body, _ := json.Marshal(details) // of strings and a number
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

// notKept are the fields that belong to one connection or one moment, and not to the response.
var notKept = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Date", "Content-Length"}

// keepable returns the fields of a response that a repetition gets too: the fields that the handler has set,
// in comparison with before.
func keepable(h, before http.Header, cookies bool) http.Header {
	drop := slices.Clone(notKept)
	if !cookies {
		drop = append(drop, "Set-Cookie")
	}
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			drop = append(drop, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	all := http.Header{}
	for name, values := range h {
		old, was := before[name]
		if was && slices.Equal(old, values) || slices.Contains(drop, name) || strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		all[name] = values
	}
	return all
}
