// Package code declares the names that the documentation's code blocks use and do not
// declare. The test compiles the blocks together with it.
package code

import (
	"context"
	"net/http"

	"github.com/gorilla/sessions"

	"github.com/ebbdb/ebb"
	gorillaebb "github.com/ebbdb/ebb/contrib/gorilla"
)

var (
	ctx     context.Context
	c       *ebb.Conn
	r       *http.Request
	w       http.ResponseWriter
	store   *gorillaebb.Store
	session *sessions.Session

	authenticationKey, encryptionKey []byte
)
