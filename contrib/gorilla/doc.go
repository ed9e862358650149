// Package gorillaebb stores the sessions of gorilla/sessions in ebb, Redis or Valkey:
//
//	store, err := gorillaebb.New(c, "session", [][]byte{authenticationKey, encryptionKey})
//	...
//	session, err := store.Get(r, "login")
//
// The cookie has the session's id alone, signed and encrypted by securecookie; the values are
// one key at the backend, which the server expires: no sweeper runs. With Options.Idle a session also ends after
// a time without a request, because each read moves the deadline.
//
// Start reading at New, then Store.New.
package gorillaebb
