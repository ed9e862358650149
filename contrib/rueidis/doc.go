// Package rueidisebb is a driver over [rueidis]: every object of the toolkit runs on a
// rueidis.Client.
//
//	conn, err := rueidisebb.Open(ctx, rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
//	limiter, err := limit.New(conn, "api", limit.PerSecond(100), limit.FailOpen)
//
// The objects use rueidis' connections. The commands of all goroutines share a few
// connections and are sent together (Do, Pipeline, Tx). A command that waits at the server
// has a connection of rueidis' blocking pool to itself (Block), and so do Watch and each
// subscription. rueidis handles Sentinel and Cluster too. Retries and errors are the same
// as with ebb.Open: the driver never sends a command twice that may have run. rueidis'
// client-side cache can answer reads: see Options.Cache.
//
//	Do ────────── the shared connections, together with commands of others at the same
//	              time; or the cache, for reads of Options.Cached
//	Pipeline, Tx ─ the shared connections; a transaction is MULTI to EXEC in one write
//	Block ─────── a connection of the blocking pool, closed if the context ends first
//	Watch ─────── a dedicated client for the length of the call
//	Subscribe ─── a dedicated client for the length of the subscription
//	Replicated ── a dedicated client for each write, on which WAIT follows
//
// Start reading at Open. driver.go is the path of a command, attempt.go decides about
// retries, autopipeline.go does the automatic pipelining, and dedicated.go follows MOVED and
// ASK.
//
// [rueidis]: https://pkg.go.dev/github.com/redis/rueidis
package rueidisebb
