package gorillaebb

import (
	"bytes"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/securecookie"
	gorilla "github.com/gorilla/sessions"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/sessions"
)

// ErrEnded says that a session has ended between the request's Get and its Save: another request has deleted or renewed
// it. Save stores nothing then, so that a user who has logged out stays logged out.
var ErrEnded = errors.New("the session has ended meanwhile")

// DefaultMaxAge is the MaxAge of a store, in seconds: 30 days, as of the stores of gorilla/sessions.
const DefaultMaxAge = 30 * 24 * 60 * 60

// Options configures a store. The zero value works.
type Options struct {
	// Cookie is the default of the sessions' Options. nil: the path "/", DefaultMaxAge, HttpOnly, Secure, and
	// SameSite Lax.
	Cookie *gorilla.Options
	// Idle is the time without a request after which a session ends. At least 1 ms; 0: a session ends
	// MaxAge after its last Save.
	Idle time.Duration
	// Browser is the life of a session whose MaxAge is 0: the browser keeps its cookie until it is closed, of which
	// the server does not hear. 0: a day.
	Browser time.Duration
	// Codec encodes the values. nil: encoding/gob, to which the program has to Register its own types.
	Codec ebb.Codec[map[any]any]
}

// Store is a store for gorilla/sessions. Its methods are safe for concurrent use; set its fields before.
type Store struct {
	// Codecs encode the id in the cookie.
	Codecs []securecookie.Codec
	// Options is the default of the sessions' Options.
	Options *gorilla.Options

	s       *sessions.Store
	browser time.Duration
	codec   ebb.Codec[map[any]any]
}

var _ gorilla.Store = (*Store)(nil)

// New returns the store of that name. A session has the key "name:id". keys are pairs of an
// authentication key (32 or 64 random bytes) and an encryption key (16, 24 or 32, or nil), as of
// gorilla/sessions: the first pair encodes cookies, and all pairs decode them, so that keys can be replaced.
// New sends nothing to the backend. Errors: ebb.ErrArgument.
func New(c *ebb.Conn, name string, keys [][]byte, opts ...Options) (*Store, error) {
	const what = "gorillaebb"
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	s, err := sessions.New(c, what, name, o.Idle)
	switch {
	case err != nil:
		return nil, err
	case len(keys) == 0 || len(keys[0]) == 0:
		return nil, kit.Argument(what, name, "there is no authentication key; it must have 32 or 64 random bytes")
	case o.Browser < 0:
		return nil, kit.Argument(what, name, "Browser is %v; it must be positive, or 0 for a day", o.Browser)
	}
	for i, key := range keys {
		if n := len(key); i%2 == 1 && n != 0 && n != 16 && n != 24 && n != 32 {
			return nil, kit.Argument(what, name, "the encryption key %d has %d bytes; it must have 16, 24 or 32, or be nil", i/2, n)
		}
	}
	if o.Browser == 0 {
		o.Browser = 24 * time.Hour
	}
	if o.Cookie == nil {
		o.Cookie = &gorilla.Options{Path: "/", MaxAge: DefaultMaxAge, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	}
	if o.Codec == nil {
		o.Codec = gobCodec{}
	}
	cookie := *o.Cookie
	x := &Store{Codecs: securecookie.CodecsFromPairs(keys...), Options: &cookie, s: s, browser: o.Browser, codec: o.Codec}
	x.MaxAge(cookie.MaxAge)
	return x, nil
}

// MaxAge sets the default MaxAge of sessions, and the age up to which the codecs accept a cookie, in seconds. 0: until
// the browser is closed. A single session has its own in Session.Options.MaxAge; below 0, Save deletes it.
func (s *Store) MaxAge(age int) {
	s.Options.MaxAge = age
	for _, c := range s.Codecs {
		if c, ok := c.(*securecookie.SecureCookie); ok {
			c.MaxAge(max(age, 0))
		}
	}
}

// Get returns the session of a cookie. Further calls with the same request return the same session. See New for errors.
func (s *Store) Get(r *http.Request, name string) (*gorilla.Session, error) {
	return gorilla.GetRegistry(r).Get(s, name)
}

// New reads the session of a cookie from the backend. It returns a session always: a new one, IsNew, if there is no cookie
// or its session has ended; and a new one with an error if the cookie was not made by this store or is too old, or if the
// backend or the codec fails. A new session gets its id from Save, so that no client chooses it.
func (s *Store) New(r *http.Request, name string) (*gorilla.Session, error) {
	session := gorilla.NewSession(s, name)
	o := *s.Options
	session.Options, session.IsNew = &o, true
	cookie, err := r.Cookie(name)
	if err != nil {
		return session, nil //nolint:nilerr // there is no cookie
	}
	id := ""
	if err := securecookie.DecodeMulti(name, cookie.Value, &id, s.Codecs...); err != nil {
		return session, s.s.Wrap("decode the cookie", err)
	}
	data, found, err := s.s.Find(r.Context(), id)
	if err != nil || !found {
		return session, err
	}
	values, err := s.codec.Decode(data)
	if err != nil {
		return session, s.s.Wrap("decode the values", err)
	}
	session.ID, session.Values, session.IsNew = id, values, false
	return session, nil
}

// Save stores a session for its MaxAge, and sets its cookie. With a MaxAge below 0 it deletes both. A
// session that was read, and that another request has deleted since, is not stored: the error is ErrEnded.
func (s *Store) Save(r *http.Request, w http.ResponseWriter, session *gorilla.Session) error {
	ctx := r.Context()
	if session.Options.MaxAge < 0 {
		if session.ID != "" {
			if err := s.s.Delete(ctx, session.ID); err != nil {
				return err
			}
			session.ID = ""
		}
		http.SetCookie(w, gorilla.NewCookie(session.Name(), "", session.Options))
		return nil
	}
	data, err := s.codec.Encode(session.Values)
	if err != nil {
		return s.s.Wrap("encode the values", err)
	}
	id, life := session.ID, time.Duration(session.Options.MaxAge)*time.Second
	if id == "" {
		id = rand.Text()
	}
	if life == 0 {
		life = s.browser
	}
	value, err := securecookie.EncodeMulti(session.Name(), id, s.Codecs...)
	if err != nil {
		return s.s.Wrap("encode the cookie", err)
	}
	saved, err := s.s.Save(ctx, id, data, life, session.ID != "" && !session.IsNew)
	switch {
	case err != nil:
		return err
	case !saved:
		return s.s.Wrap("save", ErrEnded)
	}
	session.ID = id
	http.SetCookie(w, gorilla.NewCookie(session.Name(), value, session.Options))
	return nil
}

// Renew deletes the stored data of a session, and lets its next Save store it under a new id. Call it before Save when
// the user logs in, or gets other rights: an attacker who has planted a cookie of a session of his own then has
// a cookie of nothing.
func (s *Store) Renew(r *http.Request, session *gorilla.Session) error {
	if session.ID == "" {
		return nil
	}
	if err := s.s.Delete(r.Context(), session.ID); err != nil {
		return err
	}
	session.ID = ""
	return nil
}

// String describes the store.
func (s *Store) String() string { return s.s.String() }

// gobCodec is the default codec of values.
type gobCodec struct{}

// Encode implements ebb.Codec.
func (gobCodec) Encode(values map[any]any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(values); err != nil {
		return nil, fmt.Errorf("%w: %w", ebb.ErrArgument, err)
	}
	return b.Bytes(), nil
}

// Decode implements ebb.Codec.
func (gobCodec) Decode(data []byte) (values map[any]any, err error) {
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&values); err != nil {
		return nil, fmt.Errorf("%w: %w", ebb.ErrValue, err)
	}
	return values, nil
}
