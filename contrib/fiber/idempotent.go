package fiberebb

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

// Idempotent returns a handler that makes requests with the header field Idempotency-Key repeatable, as
// package lock/httpidem does: the handlers after it run once for a key, and each repetition gets the response of that run.
//
// scope returns the caller of a request, such as the user that an earlier handler has authenticated, and
// replaces httpidem.Options.Scope; nil: that option decides. Two Options are a panic. The key in a handler is
// httpidem.KeyFrom(c.Context()), and that context ends as httpidem says.
//
// An error of a handler goes to the app's ErrorHandler inside, because its reply is the response that is kept or
// not: handlers before this one get nil, and see the status in c.Response(). A response that is a stream is read
// to its end first. fiber's adaptor.HTTPMiddleware(httpidem.New(once)) does not do that: it runs the handlers after
// the middleware has kept an empty response.
func Idempotent(once *lock.OnceValue[httpidem.Response], scope func(c fiber.Ctx) string, opts ...httpidem.Options) fiber.Handler {
	idempotent := httpidem.New(once, opts...)
	return func(c fiber.Ctx) error {
		r, err := requestOf(c)
		if err != nil {
			return fiber.ErrBadRequest
		}
		if scope != nil {
			r = httpidem.WithScope(r, strings.Clone(scope(c)))
		}
		was := c.Context()
		w := &held{header: fieldsOf(c)}
		idempotent(http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // fiber has the body; httpidem hashes the bytes that are read here
			c.SetContext(r.Context())
			defer c.SetContext(was)
			if err := c.Next(); err != nil {
				if err = c.App().ErrorHandler(c, err); err != nil {
					_ = c.SendStatus(http.StatusInternalServerError)
				}
			}
			h := inner.Header()
			clear(h)
			for name, values := range fieldsOf(c) {
				h[name] = values
			}
			inner.WriteHeader(c.Response().StatusCode())
			if body := c.Response().Body(); len(body) > 0 {
				_, _ = inner.Write(body)
			}
		})).ServeHTTP(w, r)
		w.send(c)
		return nil
	}
}

// requestOf returns the request for httpidem, as a copy: fiber uses the memory of its own again.
func requestOf(c fiber.Ctx) (*http.Request, error) {
	u, err := url.ParseRequestURI(strings.Clone(c.OriginalURL()))
	if err != nil {
		return nil, err
	}
	r := &http.Request{Method: strings.Clone(c.Method()), URL: u, Host: string(c.Request().Header.Host()),
		RequestURI: u.String(), Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: c.RequestCtx().RemoteAddr().String()}
	for name, value := range c.Request().Header.All() {
		r.Header.Add(string(name), string(value))
	}
	body := c.Request().Body()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r.WithContext(c.Context()), nil
}

// fieldsOf returns a copy of the header fields of the response, without those that fiber writes for each
// connection.
func fieldsOf(c fiber.Ctx) http.Header {
	h := http.Header{}
	for name, value := range c.Response().Header.All() {
		switch string(name) {
		case fiber.HeaderContentLength, fiber.HeaderConnection, fiber.HeaderTransferEncoding, fiber.HeaderDate:
		default:
			h.Add(string(name), string(value))
		}
	}
	return h
}

// held is the http.ResponseWriter that httpidem sends the response to.
type held struct {
	header http.Header
	status int // 0: none yet
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *held) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. fiber sends no informational responses.
func (w *held) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *held) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// send makes the response fiber's.
func (w *held) send(c fiber.Ctx) {
	to := c.Response()
	for name := range fieldsOf(c) {
		if _, stays := w.header[name]; !stays {
			to.Header.Del(name)
		}
	}
	for name, values := range w.header {
		to.Header.Del(name)
		for _, v := range values {
			to.Header.Add(name, v)
		}
	}
	to.SetStatusCode(max(w.status, http.StatusOK))
	to.SetBody(w.body.Bytes())
}
