package scsebb

import (
	"context"
	"fmt"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/sessions"
)

// Options configures a store. The zero value works.
type Options struct {
	// Idle is the time without a request after which a session ends. It takes the place of
	// SessionManager.IdleTimeout, which stays 0. At least 1 ms; 0: a session ends at its Lifetime alone.
	Idle time.Duration
}

// Store is a store for scs. It implements scs.CtxStore and scs.IterableCtxStore, and their forms
// without a context. Its methods are safe for concurrent use.
type Store struct{ s *sessions.Store }

var (
	_ scs.CtxStore         = (*Store)(nil)
	_ scs.IterableStore    = (*Store)(nil)
	_ scs.IterableCtxStore = (*Store)(nil)
)

// New returns the store of that name. A session has the key "name:token". New sends nothing to the
// backend. Errors: ebb.ErrArgument.
func New(c *ebb.Conn, name string, opts ...Options) (*Store, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("scsebb %q: %w", name, err)
	}
	s, err := sessions.New(c, "scsebb", name, o.Idle)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// FindCtx returns the data of a session. found is false if there is none, or the value of its key is not a
// session.
func (s *Store) FindCtx(ctx context.Context, token string) (b []byte, found bool, err error) {
	return s.s.Find(ctx, token)
}

// CommitCtx stores a session until expiry, or until the idle time has passed without a FindCtx. An
// expiry that has passed deletes the session.
func (s *Store) CommitCtx(ctx context.Context, token string, b []byte, expiry time.Time) error {
	_, err := s.s.Save(ctx, token, b, time.Until(expiry), false)
	return err
}

// DeleteCtx deletes a session.
func (s *Store) DeleteCtx(ctx context.Context, token string) error { return s.s.Delete(ctx, token) }

// AllCtx returns the data of all sessions by token. It does not count as use of a session: idle times go on. It scans the
// keys of the backend, so it is for administration and not for requests.
func (s *Store) AllCtx(ctx context.Context) (map[string][]byte, error) {
	all := map[string][]byte{}
	for x, err := range s.s.All(ctx) {
		if err != nil {
			return nil, err
		}
		all[x.Token] = x.Data
	}
	return all, nil
}

// Find is FindCtx without a context.
func (s *Store) Find(token string) (b []byte, found bool, err error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx without a context.
func (s *Store) Commit(token string, b []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, b, expiry)
}

// Delete is DeleteCtx without a context.
func (s *Store) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// All is AllCtx without a context.
func (s *Store) All() (map[string][]byte, error) { return s.AllCtx(context.Background()) }

// String describes the store.
func (s *Store) String() string { return s.s.String() }
