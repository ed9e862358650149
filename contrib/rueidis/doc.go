// Package rueidisebb is a driver over [rueidis]: every object of the toolkit runs on a
// rueidis.Client.
//
//	conn, err := rueidisebb.Open(ctx, rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
//	limiter, err := limit.New(conn, "api", limit.PerSecond(100), limit.FailOpen)
//
// What rueidis does, the objects get: the commands of all goroutines share a few
// connections and are sent together (Do, Pipeline, Tx); what waits at the server has
// a connection of rueidis' blocking pool to itself (Block), and so do Watch and each
// subscription. Sentinel and Cluster are rueidis' as well, what is tried again and
// what is an error is as with ebb.Open: a command that may have run is not sent twice.
// Reads may be answered from rueidis' client-side cache: see Options.Cache.
//
//	Do ────────── the shared connections, together with what others ask at the same
//	              time; or the cache, for reads of Options.Cached
//	Pipeline, Tx ─ the shared connections; a transaction is MULTI to EXEC in one write
//	Block ─────── a connection of the blocking pool, closed if the context ends first
//	Watch ─────── a dedicated client for the length of the call
//	Subscribe ─── a dedicated client for the length of the subscription
//	Replicated ── a dedicated client for each write, on which WAIT follows
//
// Start reading at Open; driver.go is the path of a command, attempt.go decides what is
// tried again, gather.go sends together, and dedicated.go goes where MOVED and ASK say.
//
// [rueidis]: https://pkg.go.dev/github.com/redis/rueidis
package rueidisebb
