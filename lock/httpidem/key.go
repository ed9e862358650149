package httpidem

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/lock"
)

// headerName is the name of the field, as net/http spells it.
const headerName = "Idempotency-Key"

// keyOf returns the key in the fields of a request, "" if there are none, or the error of the key. The draft
// requires a String of RFC 9651 without parameters, "8e03978e-..."; many clients send the same text without
// quotes, which counts as the same key.
func keyOf(fields []string, limit int) (key, wrong string) {
	switch len(fields) {
	case 0:
		return "", ""
	case 1:
	default:
		return "", fmt.Sprintf("The request has %d fields Idempotency-Key; it may have one.", len(fields))
	}
	key, wrong = unquote(strings.Trim(fields[0], " \t"))
	switch {
	case wrong != "":
	case key == "":
		wrong = "The key is empty; it must have at least one character."
	case len(key) > limit:
		wrong = fmt.Sprintf("The key has %d characters; it may have %d.", len(key), limit)
	}
	return key, wrong
}

// unquote reads a String, or a key without quotes: visible ASCII except the characters that have a meaning in
// a structured field.
func unquote(s string) (key, wrong string) {
	if !strings.HasPrefix(s, `"`) {
		special := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`",;\`, c) }
		if i := strings.IndexFunc(s, special); i >= 0 {
			return "", fmt.Sprintf(`The key has the character %q; without quotes it may have visible ASCII except ", comma, semicolon and \.`, s[i:i+1])
		}
		return s, ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && i+1 < len(s):
			return "", fmt.Sprintf("The string is followed by %q; the field may have the string alone.", s[i+1:])
		case c == '"':
			return b.String(), ""
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", `A \ is not followed by " or \.`
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", fmt.Sprintf("The string has the byte %#x; it may have printable ASCII.", c)
		default:
			b.WriteByte(c)
		}
	}
	return "", "The string has no closing quote."
}

// scoped returns the key for the OnceValue. The scope may be a secret, such as a token, and of any length, so
// its hash stands for it. Without a scope another mark stands there, which no client can produce as the hash
// of a scope.
func scoped(scope, key string) string {
	if scope == "" {
		return "-:" + key
	}
	sum := sha256.Sum256([]byte(scope))
	return hex.EncodeToString(sum[:16]) + ":" + key
}

// Problem describes a refusal.
type Problem struct {
	Status     int
	Title      string
	Detail     string
	RetryAfter time.Duration // of Retry-After; 0: none
	Docs       string        // Options.Docs
	Err        error         // why the backend did not decide; nil for errors of the client
}

// complete checks the options and completes them.
func (o *Options) complete(once *lock.OnceValue[Response]) error {
	if once == nil {
		return fmt.Errorf("%w: once is nil; pass the result of lock.NewOnceValue", conn.ErrArgument)
	}
	if o.MaxKey < 0 || o.MaxRequest < 0 || o.MaxResponse < 0 || o.Wait < 0 || o.RetryAfter < 0 || o.Timeout < 0 {
		return fmt.Errorf("%w: MaxKey is %d, MaxRequest %d, MaxResponse %d, Wait %v, RetryAfter %v and Timeout %v; each must be positive, or 0 for the default",
			conn.ErrArgument, o.MaxKey, o.MaxRequest, o.MaxResponse, o.Wait, o.RetryAfter, o.Timeout)
	}
	if o.Methods == nil {
		o.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	setDefault(&o.MaxKey, DefaultMaxKey)
	setDefault(&o.MaxRequest, DefaultMaxRequest)
	setDefault(&o.MaxResponse, DefaultMaxResponse)
	setDefault(&o.RetryAfter, DefaultRetryAfter)
	setDefault(&o.Timeout, DefaultTimeout)
	if o.Keep == nil {
		o.Keep = KeepFinal
	}
	if o.Refuse == nil {
		o.Refuse = WriteProblem
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
