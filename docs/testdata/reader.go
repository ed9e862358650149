// Package code is what the blocks of the documentation are compiled with: what they
// leave to the reader.
package code

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
	"github.com/ebbdb/ebb/topic"
	"github.com/ebbdb/ebb/unique"
)

type (
	Session struct{}
	Mail    struct{ To string }
	Email   = Mail
	Order   struct{ ID int }
)

// What a program has at hand.
var (
	ctx         context.Context
	c           *ebb.Conn
	b           *ebbtest.Backend
	rdb, client redis.UniversalClient
	driver      conn.Driver
	w           io.Writer
	t           *testing.T
	api         http.Handler
	payments    http.Handler

	s               Session
	id, user, url   string
	hostname        string
	job             Mail
	userID          int64
	today           bits.Day
	tuesday         *bits.Bitmap
	all, site, shop *unique.Counter
	l               *lock.Lock
	m               *expmap.Map[string, Session]
	changed         Session
	visits          *expmap.Map[string, int64]
	page            string
	orders          *topic.Topic[Order]
	q               *queue.Queue[Mail]
	jobs            lock.Later[Mail]
)

// What a program does.
func log(error)                                                          {}
func use(Order)                                                          {}
func userOf(r *http.Request) string                                      { return "" }
func reload()                                                            {}
func work(Order) error                                                   { return nil }
func tooMany(after time.Duration) error                                  { return nil }
func send(context.Context, Mail) error                                   { return nil }
func write(ctx context.Context, token int64) error                       { return nil }
func writeReport(ctx context.Context, n int64) error                     { return nil }
func release(ctx context.Context, set, member string) error              { return nil }
func bill(ctx context.Context, id string, s Session, at time.Time) error { return nil }

// Shop is a service that a test runs.
type Shop struct{}

func newShop(redis.UniversalClient) Shop          { return Shop{} }
func (Shop) order(ctx context.Context, id string) {}
