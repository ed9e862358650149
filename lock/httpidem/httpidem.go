// Package httpidem has middleware for net/http that makes requests with the header field
// Idempotency-Key repeatable: the handler runs once for a key, and each repetition gets the response of that
// run.
//
//	once, err := lock.NewOnceValue[httpidem.Response](c, "payments", 24*time.Hour)
//	...
//	http.Handle("/payments", httpidem.New(once, httpidem.Options{Scope: userOf})(payments))
//
// It follows draft-ietf-httpapi-idempotency-key-header (version 07):
//
//	request ─▶ no key                    the handler, or 400 if a key is required
//	        ─▶ the key is malformed      400
//	        ─▶ its first use             the handler; its response is kept, then sent
//	        ─▶ the first still runs      409, Retry-After
//	        ─▶ a repetition              the kept response, with Idempotent-Replayed: true
//	        ─▶ another request           422: another method, path, query or body
//
// Invariants: at most one handler runs for a key at a time, in all programs. A response is kept before the
// client gets it, unless the handler flushes it or it is too large. A kept response belongs to the scope of
// its caller.
//
// A handler that panics, whose response is not one to keep (5xx), or whose program dies, gives up its right
// to do the work: the next request with the key runs the handler again. See lock.OnceValue.
//
// Start reading at New, then exchange.run; response.go has the kept record.
package httpidem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/lock"
)

// The defaults of Options.
const (
	DefaultMaxKey      = 255
	DefaultMaxRequest  = 10 << 20 // the body is hashed and not stored, so this costs no memory
	DefaultMaxResponse = 1 << 20  // the middleware holds it in memory until it is stored
	DefaultRetryAfter  = time.Second
	DefaultTimeout     = 3 * time.Second
)

// Options configures the middleware. The zero value works for programs with one caller.
type Options struct {
	// Scope returns the caller of a request, for instance its authenticated user. The same key from two callers
	// counts as two keys. An API with several callers needs Scope: without it, a caller that sends the key and
	// the request of another caller gets that caller's response. The middleware stores a hash of the scope.
	// WithScope overrides Scope for one request. nil: all requests have one scope.
	Scope func(r *http.Request) string
	// Methods are the methods whose requests the middleware makes repeatable. nil: POST and PATCH, because the
	// others are repeatable by definition.
	Methods []string
	// Required refuses requests without a key, with 400.
	Required bool
	// MaxKey is the largest number of bytes of a key; a longer one is refused with 400. 0: 255.
	MaxKey int
	// MaxRequest is the largest number of bytes of a request's body. A larger one is refused with 413, or the
	// handler gets an *http.MaxBytesError if the size is known only while it reads. 0: 10 MiB.
	MaxRequest int64
	// MaxResponse is the largest number of bytes of a response's body that is kept. A larger response is
	// passed on, and a repetition of the request gets 409 without Retry-After: the handler does not run again.
	// 0: 1 MiB.
	MaxResponse int
	// Keep reports whether responses with a status are kept. nil: KeepFinal.
	Keep func(status int) bool
	// KeepCookies keeps Set-Cookie fields too. Without it, only the first response has them: a cookie may be a
	// secret, and may be out of date.
	KeepCookies bool
	// Wait is the time for which a request waits while the first with its key runs. 0: 409 at once.
	Wait time.Duration
	// RetryAfter is the time of Retry-After in replies 409 and 503, in whole seconds; 0: 1 s.
	RetryAfter time.Duration
	// Timeout is the time within which the backend must decide whether the handler may run. 0: 3 s.
	Timeout time.Duration
	// FailOpen runs the handler when the backend does not decide in time; the request is then not repeatable.
	// Without FailOpen, such a request is refused with 503.
	FailOpen bool
	// CancelWithClient ends the handler's context when the client disconnects, as without this middleware. By
	// default the handler runs on, until the deadline of the request's context: a client that lost its
	// connection can repeat the request and get the response.
	CancelWithClient bool
	// Docs is the URL of a page that describes how the API uses keys. Refusals have it as the type of the
	// problem, and in a Link field. "": none.
	Docs string
	// Refuse writes the reply to a request that is refused. nil: WriteProblem.
	Refuse func(w http.ResponseWriter, r *http.Request, p Problem)
	// Logger receives requests whose key could not be looked up, and responses that could not be kept. nil: no
	// log.
	Logger *slog.Logger
}

// KeepFinal is the default of Options.Keep. It keeps statuses below 500, except for those after which the
// same request may succeed: 401, 408, 425 and 429.
func KeepFinal(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError
}

// New returns middleware that runs the next handler once for each key, and keeps its responses in once, for
// the span of once. The name of once belongs to the API: programs that serve the same handlers share it. New
// panics if it gets more than one Options, or an option is negative.
func New(once *lock.OnceValue[Response], opts ...Options) func(http.Handler) http.Handler {
	o, err := kit.Option(opts)
	if err == nil {
		err = o.complete(once)
	}
	if err != nil {
		panic(fmt.Errorf("httpidem: New: %w", err))
	}
	return func(next http.Handler) http.Handler { return &handler{once: once, opt: o, next: next} }
}

// handler wraps the next handler.
type handler struct {
	once *lock.OnceValue[Response]
	opt  Options
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(h.opt.Methods, r.Method) {
		h.next.ServeHTTP(w, r)
		return
	}
	key, wrong := keyOf(r.Header[headerName], h.opt.MaxKey)
	switch {
	case wrong != "":
		h.refuse(w, r, Problem{Status: http.StatusBadRequest, Title: "Idempotency-Key is malformed", Detail: wrong})
	case key != "" && r.ContentLength > h.opt.MaxRequest:
		h.refuse(w, r, Problem{Status: http.StatusRequestEntityTooLarge, Title: "The request is too large",
			Detail: fmt.Sprintf("The body has %d bytes; with an Idempotency-Key it may have %d.", r.ContentLength, h.opt.MaxRequest)})
	case key != "":
		newExchange(h, w, r, key).run()
	case h.opt.Required:
		h.refuse(w, r, Problem{Status: http.StatusBadRequest, Title: "Idempotency-Key is missing",
			Detail: "The operation requires the header field Idempotency-Key, with a new value for each operation and the same for each repetition."})
	default:
		h.next.ServeHTTP(w, r)
	}
}

// exchange is a request with a key, and its response.
type exchange struct {
	*handler
	w    http.ResponseWriter
	r    *http.Request
	key  string // of the request
	id   string // the key with its scope
	body *hashed
	rec  *recorder

	ran       bool // the handler has run
	abandoned bool // the handler has written nothing, and its context had ended
}

func newExchange(h *handler, w http.ResponseWriter, r *http.Request, key string) *exchange {
	scope, known := r.Context().Value(scopeContext{}).(string)
	if !known && h.opt.Scope != nil {
		scope = h.opt.Scope(r)
	}
	return &exchange{handler: h, w: w, r: r, key: key, id: scoped(scope, key), body: newHashed(w, r, h.opt.MaxRequest),
		rec: newRecorder(w, h.opt.MaxResponse)}
}

// errNotKept ends an exchange whose response is not kept.
var errNotKept = errors.New("the response is not one to keep")

// errLate is the cause of a context that ended because the backend did not decide in time.
var errLate = errors.New("no decision in time")

// run serves the request.
func (x *exchange) run() {
	kept, what, err := x.attempt(x.opt.Timeout, x.once.TryDo)
	running := errors.Is(err, lock.ErrTaken)
	if running && x.opt.Wait > 0 {
		kept, what, err = x.attempt(x.opt.Wait, x.once.Do)
		running = errors.Is(err, errLate)
	}
	switch {
	case x.ran:
		x.finish(err)
	case err == nil && what == lock.Done:
		x.replay(kept)
	case running:
		x.refuse(x.w, x.r, Problem{Status: http.StatusConflict, Title: "A request is outstanding for this Idempotency-Key",
			Detail: "A request with the same Idempotency-Key is being processed. Repeat the request later to get its response.", RetryAfter: x.opt.RetryAfter})
	case x.r.Context().Err() != nil: // the client has gone
	default:
		x.opt.Logger.Error("httpidem: cannot look up the Idempotency-Key", "error", err)
		if x.opt.FailOpen {
			x.next.ServeHTTP(x.w, x.r)
			return
		}
		x.refuse(x.w, x.r, Problem{Status: http.StatusServiceUnavailable, Title: "The request cannot be made repeatable now",
			Detail: "The store of idempotency keys is not available, so the request was not processed. Repeat it later.", RetryAfter: x.opt.RetryAfter, Err: err})
	}
}

type do func(ctx context.Context, key string, fn func(context.Context) (Response, error)) (Response, lock.Outcome, error)

// attempt asks the backend for the kept response or for the right to run the handler, within a time that ends
// when the handler begins. Its error has errLate in its chain if that time was over.
func (x *exchange) attempt(within time.Duration, do do) (Response, lock.Outcome, error) {
	parent := x.r.Context()
	if !x.opt.CancelWithClient {
		parent = context.WithoutCancel(parent)
		if at, ok := x.r.Context().Deadline(); ok {
			var drop context.CancelFunc
			parent, drop = context.WithDeadline(parent, at)
			defer drop()
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	gone := context.AfterFunc(x.r.Context(), func() { cancel(context.Cause(x.r.Context())) })
	defer gone()
	late := time.AfterFunc(within, func() { cancel(errLate) })
	defer late.Stop()
	v, what, err := do(ctx, x.id, func(inside context.Context) (Response, error) {
		if !late.Stop() || !gone() { // the context ends
			<-inside.Done()
			return Response{}, inside.Err()
		}
		return x.handle(inside)
	})
	if err != nil && !x.ran && errors.Is(context.Cause(ctx), errLate) {
		err = fmt.Errorf("%w: %w", errLate, err)
	}
	return v, what, err
}

// handle runs the handler and returns the response to keep.
func (x *exchange) handle(ctx context.Context) (Response, error) {
	x.ran = true
	r := x.r.WithContext(context.WithValue(ctx, contextKey{}, x.key))
	r.Body = x.body
	x.next.ServeHTTP(x.rec, r)
	switch {
	case !x.rec.began() && ctx.Err() != nil:
		x.abandoned = true
		return Response{}, context.Cause(ctx)
	case !x.rec.began():
		x.rec.WriteHeader(http.StatusOK) // as net/http does
	}
	if x.body.broken() || x.rec.truncated() || !x.rec.omitted && !x.opt.Keep(x.rec.status) {
		return Response{}, errNotKept
	}
	return x.kept(), nil
}

// finish sends the response of the handler, which has run. err is the error of storing it.
func (x *exchange) finish(err error) {
	if err != nil && !errors.Is(err, errNotKept) {
		x.opt.Logger.Error("httpidem: a response was not kept", "status", x.rec.status, "error", err)
	}
	if x.abandoned {
		x.refuse(x.w, x.r, Problem{Status: http.StatusServiceUnavailable, Title: "The request was not finished",
			Detail: "The processing of the request has ended before there was a response. Repeat the request.", RetryAfter: x.opt.RetryAfter, Err: err})
		return
	}
	x.rec.end()
}

// contextKey is the key of a request's key in its context.
type contextKey struct{}

// Key returns the idempotency key of a request, without quotes and scope. A handler can store it in its own
// transaction, or pass it to the next API. Key returns "" where the middleware does not apply.
func Key(r *http.Request) string { return KeyFrom(r.Context()) }

// KeyFrom is Key for the context of a handler: for frameworks whose handlers have no *http.Request.
func KeyFrom(ctx context.Context) string {
	key, _ := ctx.Value(contextKey{}).(string)
	return key
}

// scopeContext is the key of a request's scope in its context.
type scopeContext struct{}

// WithScope returns the request with a scope that overrides Options.Scope. It is for middleware that runs
// before this one and knows the caller, in frameworks whose handlers keep the caller outside the request.
func WithScope(r *http.Request, scope string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), scopeContext{}, scope))
}
