package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/resp"
)

// route is an endpoint under api/. An endpoint that is not in the table does not exist.
type route struct {
	method, path string
	// open routes answer requests without a login.
	open bool
	// lasts: the response is a stream.
	lasts bool
	// named: parameters are names or patterns, which may be too long for an address: the route answers POST as it answers GET,
	// with the parameters in an object of texts as the body.
	named bool
	// answer returns what is written as JSON, nil for 204, or errSent after it has written to
	// request.w itself.
	answer func(c *Console, q *request) (any, error)
}

// routes is the table of the API.
func routes() []route {
	return []route{
		{method: "POST", path: "login", open: true, answer: postLogin},
		{method: "POST", path: "logout", open: true, answer: postLogout},
		{method: "GET", path: "me", answer: getMe},
		{method: "POST", path: "do", answer: postDo},
		{method: "POST", path: "batch", answer: postBatch},
		{method: "GET", path: "audit", answer: getAudit},
		{method: "GET", path: "commands", answer: getCommands},
		{method: "GET", path: "help", answer: getHelp},
		{method: "GET", path: "keys", named: true, answer: withCall(getKeys)},
		{method: "GET", path: "key", named: true, answer: withCall(getKey)},
		{method: "GET", path: "forecast", named: true, answer: withCall(getForecast)},
		{method: "GET", path: "lag", answer: withCall(getLag)},
		{method: "GET", path: "soon", named: true, answer: withCall(getSoon)},
		{method: "GET", path: "feed", named: true, lasts: true, answer: getFeed},
		{method: "GET", path: "samples", answer: getSamples},
		{method: "GET", path: "concerns", answer: withCall(getConcerns)},
		{method: "GET", path: "limits", named: true, answer: withCall(getLimits)},
		{method: "GET", path: "locks", named: true, answer: withCall(getLocks)},
		{method: "GET", path: "lock", named: true, answer: withCall(getLock)},
		{method: "GET", path: "queues", named: true, answer: withCall(getQueues)},
		{method: "GET", path: "queue", named: true, answer: withCall(getQueue)},
		{method: "GET", path: "streams", named: true, answer: withCall(getStreams)},
		{method: "GET", path: "stream", named: true, answer: withCall(getStream)},
		{method: "GET", path: "clients", answer: withCall(getClients)},
		{method: "GET", path: "slowlog", answer: withCall(getSlowlog)},
		{method: "GET", path: "hot", answer: withCall(getHot)},
		{method: "GET", path: "server", answer: withCall(getServer)},
		{method: "GET", path: "performance", answer: withCall(getPerformance)},
		{method: "GET", path: "latency", answer: withCall(getLatency)},
		{method: "GET", path: "scripts", answer: withCall(getScripts)},
		{method: "GET", path: "replication", answer: withCall(getReplication)},
		{method: "GET", path: "files", answer: withCall(getFiles)},
		{method: "GET", path: "config", answer: withCall(getConfig)},
		{method: "GET", path: "acl", answer: withCall(getACL)},
		{method: "GET", path: "acllog", answer: withCall(getACLLog)},
		{method: "POST", path: "walk", answer: postWalk},
		{method: "GET", path: "walk", answer: getWalk},
		{method: "DELETE", path: "walk", answer: deleteWalk},
	}
}

// request is a request to the API.
type request struct {
	w   http.ResponseWriter
	r   *http.Request
	ctx context.Context        // ends with the request, and with the console
	v   *viewer                // nil in an open route of a viewer without a login
	cut atomic.Pointer[cutter] // of a stream

	sent    []byte              // the body
	params  map[string][]string // the parameters
	release func()              // releases the share; nil: there is none
}

// failure is an error response. Its JSON is the body.
type failure struct {
	status  int
	retry   int    // seconds, for Retry-After; 0: none
	Text    string `json:"error"`
	Code    string `json:"code,omitempty"`    // the first word of an error reply
	Login   bool   `json:"login,omitempty"`   // the viewer must log in
	Gone    bool   `json:"gone,omitempty"`    // the key does not exist
	Confirm string `json:"confirm,omitempty"` // what the viewer must type
	Loading any    `json:"loading,omitempty"`
	Secret  bool   `json:"secret,omitempty"`  // as of a reply
	Command string `json:"command,omitempty"` // the command that the viewer's user may not run
	Rule    string `json:"rule,omitempty"`    // the ACL rule that allows it
}

// Error implements error.
func (f *failure) Error() string { return f.Text }

var (
	errClosing = &failure{status: http.StatusServiceUnavailable, Text: "the server is shutting down"}
	errSent    = errors.New("the answer is written")
)

func badRequest(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, Text: fmt.Sprintf(format, args...)}
}

// errGone is the response about a key that does not exist.
func errGone(text string) *failure {
	return &failure{status: http.StatusNotFound, Text: text, Gone: true}
}

// failureOf returns the answer for an error of a handler.
func failureOf(err error) *failure {
	var f *failure
	var reply resp.ReplyError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &reply):
		f = &failure{status: http.StatusConflict, Text: reply.Error(), Code: reply.Code()}
		switch f.Code {
		case "NOPERM":
			f.status = http.StatusForbidden
		case "LOADING", "BUSY", "MASTERDOWN", "OOM", "MISCONF", "CLUSTERDOWN", "PAUSED":
			f.status = http.StatusServiceUnavailable
		}
		return f
	case errors.Is(err, errNotAllowed):
		return &failure{status: http.StatusForbidden, Text: err.Error(), Code: "NOPERM"}
	case errors.Is(err, engine.ErrClosed), errors.Is(err, context.Canceled):
		return errClosing
	}
	return &failure{status: http.StatusInternalServerError, Text: err.Error()}
}

func writeFailure(w http.ResponseWriter, f *failure) {
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retry))
	}
	writeJSON(w, f.status, f)
}

// writeJSON writes an answer.
func writeJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer) // escapes <, > and &
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer could not be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// serve answers a request.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if name, ok := strings.CutPrefix(path, "api/"); ok {
		c.serveAPI(w, r, name)
		return
	}
	c.serveUI(w, r, path)
}

// serveAPI answers a request for api/name.
func (c *Console) serveAPI(w http.ResponseWriter, r *http.Request, name string) {
	methods := c.api[name]
	if methods == nil {
		writeFailure(w, &failure{status: http.StatusNotFound, Text: "the console has no endpoint api/" + name})
		return
	}
	at := methods[r.Method]
	if at == nil {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
		writeFailure(w, &failure{status: http.StatusMethodNotAllowed, Text: "api/" + name + " has no method " + r.Method})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if f := vet(r); f != nil {
		writeFailure(w, f)
		return
	}
	q := &request{w: w, r: r, ctx: r.Context(), params: r.URL.Query()}
	if !at.open {
		var err error
		if q.v, err = c.viewerOf(r); err != nil {
			writeFailure(w, failureOf(err))
			return
		}
	}
	leave, err := c.admit(q)
	if err != nil {
		writeFailure(w, failureOf(err))
		return
	}
	defer leave()
	defer func() {
		if q.release != nil {
			q.release()
		}
	}()
	answer, err := c.answer(at, q)
	switch {
	case err == errSent:
	case err != nil:
		writeFailure(w, failureOf(err))
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

// answer returns the answer of a route. It reads the body first: a client that sends it slowly holds no share.
func (c *Console) answer(at *route, q *request) (any, error) {
	if q.r.Method == http.MethodPost {
		if err := q.read(); err != nil {
			return nil, err
		}
		if at.named {
			if err := q.parseBody(); err != nil {
				return nil, err
			}
		}
	}
	if !at.open && !at.lasts {
		if err := q.share(c); err != nil {
			return nil, err
		}
	}
	return at.answer(c, q)
}

// share acquires a share for the request.
func (q *request) share(c *Console) error {
	release, err := c.shares.acquire(q.ctx, q.v.id.Name())
	q.release = release
	return err
}

// shareAgain lets a request that waits have the share of this one, and acquires another.
func (q *request) shareAgain(c *Console) error {
	if q.release == nil || !c.shares.awaited() {
		return nil
	}
	q.release()
	return q.share(c)
}

// withCall returns the handler of a route from a function that runs commands: it gets a session of the viewer, in the
// database that the parameter db names.
func withCall(answer func(k *call, q *request) (any, error)) func(c *Console, q *request) (any, error) {
	return func(c *Console, q *request) (any, error) {
		db, err := q.number("db", 0, 0, int64(c.svc.DB.Databases())-1)
		if err != nil {
			return nil, err
		}
		k, err := c.from(q, int(db))
		if err != nil {
			return nil, err
		}
		defer k.release()
		a, err := answer(k, q)
		return a, k.named(err)
	}
}

// from does the work of as for the viewer of a request, whose address the audit shows.
func (c *Console) from(q *request, db int) (*call, error) {
	k, err := c.as(q.v, db)
	if err == nil {
		k.addr = q.r.RemoteAddr
	}
	return k, err
}

// text returns a parameter, "" if it is missing.
func (q *request) text(name string) string {
	if !q.has(name) {
		return ""
	}
	return q.params[name][0]
}

// has reports whether a request has a parameter.
func (q *request) has(name string) bool { return len(q.params[name]) > 0 }

// number returns a parameter, or def if it is missing or empty.
func (q *request) number(name string, def, low, high int64) (int64, error) {
	s := q.text(name)
	if s == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		return 0, badRequest("the parameter %s is %q, and must be a whole number from %d to %d", name, s, low, high)
	}
	return n, nil
}

// word returns a parameter that is one of some words, the first of them if it is missing.
func (q *request) word(name string, words ...string) (string, error) {
	s := q.text(name)
	if s == "" {
		return words[0], nil
	}
	for _, w := range words {
		if s == w {
			return s, nil
		}
	}
	return "", badRequest("the parameter %s is %q, and must be one of %s", name, s, strings.Join(words, ", "))
}

// key returns a parameter that has bytes in base64url without padding, as k=.
func (q *request) key(name string) (string, error) {
	s := q.text(name)
	key, err := decodeKey(s)
	if err != nil || !q.has(name) {
		return "", badRequest("the parameter %s is %.80q, and must be bytes in base64url without padding", name, s)
	}
	return key, nil
}

// decodeKey returns the bytes of a key in a URL.
func decodeKey(s string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	return string(raw), err
}

// bodyTime is the time that a client has to send a body.
const bodyTime = 10 * time.Second

// read reads the body of a request.
func (q *request) read() (err error) {
	conn := http.NewResponseController(q.w)
	defer time.AfterFunc(bodyTime, func() { _ = conn.SetReadDeadline(pastDeadline) }).Stop() // not every ResponseWriter can
	q.sent, err = io.ReadAll(q.r.Body)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &failure{status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the body has more than %d bytes", long.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &failure{status: http.StatusRequestTimeout, Text: "the body has not come within " + bodyTime.String()}
	case err != nil:
		return badRequest("the body cannot be read: %v", err)
	}
	return nil
}

// parseBody reads the parameters of a request from its body instead of its URL.
func (q *request) parseBody() error {
	params := map[string]string{}
	if err := q.body(&params); err != nil {
		return err
	}
	q.params, q.sent = make(map[string][]string, len(params)), nil
	for name, value := range params {
		q.params[name] = []string{value}
	}
	return nil
}

// body decodes the JSON of a request into x. Unknown fields are errors.
func (q *request) body(x any) error {
	in := json.NewDecoder(bytes.NewReader(q.sent))
	in.DisallowUnknownFields()
	if err := in.Decode(x); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // its text shows types of Go
			return badRequest("the body has the JSON value %s at %q, and must have a value of another type there", wrong.Value, wrong.Field)
		}
		return badRequest("the body must be JSON: %v", err)
	}
	if in.More() {
		return badRequest("the body must be one JSON value")
	}
	return nil
}
