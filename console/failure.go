package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/resp"
)

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
	Secret  bool   `json:"secret,omitempty"`  // as in a reply
	Command string `json:"command,omitempty"` // the command that the viewer's user may not run
	Rule    string `json:"rule,omitempty"`    // the ACL rule that allows it
}

// Error implements error.
func (f *failure) Error() string { return f.Text }

var (
	errClosing = &failure{status: http.StatusServiceUnavailable, Text: "the server is shutting down"}
	errSent    = errors.New("the answer is written")
)

// errNotAllowed is the error of call.do for a command that the user may not run.
var errNotAllowed = errors.New("the user may not run the command")

func badRequest(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, Text: fmt.Sprintf(format, args...)}
}

// errGone is the response about a key that does not exist.
func errGone(text string) *failure {
	return &failure{status: http.StatusNotFound, Text: text, Gone: true}
}

// failureOf returns the response for an error of a handler.
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
