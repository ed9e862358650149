// Package goredis is the conn.Driver of servers, through go-redis: one server, the master
// that Sentinel names, or the nodes of a cluster; ebb, Redis or Valkey.
//
//	open.go          URLs, options, Open and Wrap
//	server.go        commands, pipelines and transactions of one server
//	cluster.go       the same in a cluster: the node of the key, redirections
//	batch.go         pipelines in a cluster
//	fanout.go        commands that concern all masters of a cluster
//	autopipeline.go  commands of many goroutines go in one pipeline
//	block.go         commands that wait, each on a connection of its own
//	feed.go          subscriptions
//	capability.go    the handshake, and what the server can do
//	reply.go         replies, and whether a command has run
//	replicated.go    writes that wait for replicas
//
// The driver sends a command twice only if it is certain that the command has not run.
// Start reading at driver.Do in server.go, then reply.go.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/drivers"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// driver is the conn.Driver of servers, through go-redis.
//
//	Do, Pipeline, Tx, Watch ──┬─ one server, or the master that Sentinel names
//	                          └─ cluster.go: the node of the key
//	Do of many goroutines     autopipeline.go: together, to the same places
//	Block                     block.go: a connection that waits, to the same places
//	Subscribe                 feed.go
//
// A command is sent twice only if it is certain that it has not run: it was
// never written (tracked), or the reply says so (routing.Untouched).
type driver struct {
	client redis.UniversalClient
	one    *redis.Client // client, unless it is a cluster's
	nodes  *cluster      // of a cluster's client
	auto   *autoPipeline // of one
	moves  *moves        // of one that follows Sentinel
	policy remote.Policy // the retries
	owned  bool          // Close closes client
	name   string        // the URL, without its password

	probe *remote.Probe
	calls *remote.Gate
	later remote.Later // gives back again what calls without an answer may have got

	mu       sync.Mutex // guards what follows
	blockers []*blocker // idle ones
	waiting  map[*blocker]struct{}
	closed   bool
}

// processor is a client, a transaction's connection, or a pipeline.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Do implements Driver.
func (b *driver) Do(ctx context.Context, args []any) (conn.Value, error) {
	if !b.calls.Enter() {
		return conn.Value{}, conn.ErrClosed
	}
	defer b.calls.Leave()
	plain, err := b.prepare(ctx, args)
	if err != nil {
		return conn.Value{}, err
	}
	return b.run(ctx, plain)
}

// run runs one command of plain arguments.
func (b *driver) run(ctx context.Context, plain []any) (conn.Value, error) {
	if b.nodes != nil {
		return b.nodes.do(ctx, plain)
	}
	return b.policy.Persist(ctx, named(plain), func() remote.Answer { return b.send(ctx, plain) })
}

// send runs one command, once, on a single server.
func (b *driver) send(ctx context.Context, plain []any) remote.Answer {
	if b.auto != nil {
		return b.auto.send(ctx, plain)
	}
	return send(ctx, b.client, plain)
}

// prepare returns the arguments in the form in which they are sent. It first waits for the
// capability probe.
func (b *driver) prepare(ctx context.Context, args []any) ([]any, error) {
	plain, err := plainArgs(args)
	if err != nil {
		return nil, err
	}
	return plain, b.probe.Known(ctx)
}

// send runs one command, once.
func send(ctx context.Context, p processor, plain []any) remote.Answer {
	if _, ok := waits(ctx, plain); ok {
		return sendAll(ctx, p.Pipeline(), [][]any{plain})[0]
	}
	cmd := newTracked(ctx, plain)
	return cmd.answer(ctx, p.Process(ctx, cmd))
}

// process runs one command, once, on the caller's connection.
func process(ctx context.Context, p processor, args []any) (conn.Value, error) {
	plain, err := plainArgs(args)
	if err != nil {
		return conn.Value{}, err
	}
	a := send(ctx, p, plain)
	if a.Err == nil && routing.Untouched(a.V) {
		a.Err = policy.Refusal(named(plain), a.V)
	}
	return a.V, a.Err
}

// batch runs a call with the commands of a batch, whose arguments it converts as plainArgs does.
func (b *driver) batch(ctx context.Context, cmds [][]any, run func(plain [][]any) ([]conn.Value, error)) ([]conn.Value, error) {
	if !b.calls.Enter() {
		return nil, conn.ErrClosed
	}
	defer b.calls.Leave()
	plain := make([][]any, len(cmds))
	for i, args := range cmds {
		var err error
		if plain[i], err = plainArgs(args); err != nil {
			return nil, err
		}
	}
	if err := b.probe.Known(ctx); err != nil {
		return nil, err
	}
	return run(plain)
}

// Pipeline implements Driver.
func (b *driver) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return b.batch(ctx, cmds, func(plain [][]any) ([]conn.Value, error) {
		if b.nodes != nil {
			return b.nodes.pipeline(ctx, plain)
		}
		var answers []remote.Answer
		_, err := b.policy.Persist(ctx, "pipeline", func() remote.Answer {
			answers = sendAll(ctx, b.client.Pipeline(), plain)
			return remote.Together(answers)
		})
		if err != nil {
			return nil, err // nothing ran, or it is unknown what ran
		}
		return values(answers)
	})
}

// values returns the replies of a batch.
func values(answers []remote.Answer) ([]conn.Value, error) {
	replies := make([]conn.Value, len(answers))
	for i, a := range answers {
		if a.Err != nil {
			return nil, a.Err
		}
		replies[i] = a.V
	}
	return replies, nil
}

// sendAll sends commands as one pipeline, over one connection, and collects their answers.
// It waits for the replicas at the end.
func sendAll(ctx context.Context, p redis.Pipeliner, plain [][]any) []remote.Answer {
	w, waiting := waits(ctx, plain...)
	if waiting {
		plain = append(plain[:len(plain):len(plain)], waitArgs(w))
	}
	sent := make([]*tracked, len(plain))
	for i, args := range plain {
		sent[i] = newTracked(ctx, args)
		_ = p.Process(ctx, sent[i])
	}
	_, whole := p.Exec(ctx)
	answers := make([]remote.Answer, len(plain))
	for i, cmd := range sent {
		answers[i] = cmd.answer(ctx, whole)
	}
	if waiting {
		last := len(answers) - 1
		for i := range last {
			if drivers.MayWrite(plain[i]) {
				answers[i] = w.Check(answers[i], answers[last])
			}
		}
		answers = answers[:last]
	}
	return answers
}

// Tx implements Driver.
func (b *driver) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return b.batch(ctx, cmds, func(plain [][]any) (replies []conn.Value, err error) {
		if b.nodes != nil {
			return b.nodes.tx(ctx, plain)
		}
		_, err = b.policy.Persist(ctx, "transaction", func() (a remote.Answer) {
			if b.one != nil {
				replies, a = txOn(ctx, b.one, false, plain)
			} else {
				replies, a = execTx(ctx, b.client.TxPipeline(), plain)
			}
			return a
		})
		return replies, err
	})
}

// txOn runs commands between MULTI and EXEC on a server, once, after ASKING if a
// node has redirected us.
func txOn(ctx context.Context, node *redis.Client, ask bool, plain [][]any) ([]conn.Value, remote.Answer) {
	w, waiting := waits(ctx, plain...)
	if !ask && !waiting {
		return execTx(ctx, node.TxPipeline(), plain)
	}
	own := node.Conn() // ASKING and WAIT concern one connection
	defer func() { _ = own.Close() }()
	if ask { // ASKING holds for the transaction after it
		if a := send(ctx, own, []any{"ASKING"}); a.Err != nil {
			return nil, remote.Answer{Err: a.Err}
		}
	}
	replies, a := execTx(ctx, own.TxPipeline(), plain)
	if waiting && a.Ran && a.Err == nil {
		a = w.Check(a, send(ctx, own, waitArgs(w)))
	}
	return replies, a
}

// execTx runs commands between MULTI and EXEC, once. The answer is that of the whole
// transaction. Its Value is an error if the server refused the transaction or one of its
// commands for a temporary reason.
func execTx(ctx context.Context, p redis.Pipeliner, plain [][]any) ([]conn.Value, remote.Answer) {
	sent := make([]*tracked, len(plain))
	for i, args := range plain {
		sent[i] = newTracked(ctx, args)
		_ = p.Process(ctx, sent[i])
	}
	_, whole := p.Exec(ctx)
	if errors.Is(whole, redis.TxFailedErr) {
		return nil, remote.Answer{Err: conn.ErrConflict, Ran: true}
	}
	replies := make([]conn.Value, len(plain))
	var abort, refused error
	for i, cmd := range sent {
		a := cmd.answer(ctx, whole)
		if a.Err != nil {
			return nil, a
		}
		replies[i] = a.V
		switch e := a.V.Err(); {
		case e == nil:
		case strings.HasPrefix(a.V.Str, "EXECABORT"):
			abort = e
		case refused == nil:
			refused = e
		}
	}
	if v, ok := errorValue(whole); ok && v.Kind == resp.KindError {
		if strings.HasPrefix(v.Str, "EXECABORT") {
			abort = v.Err()
		}
		if routing.Untouched(v) && refused != nil && v.Str == refused.Error() && abort == nil && allSame(replies, v) {
			return nil, remote.Answer{V: v} // EXEC itself was refused
		}
	}
	if abort == nil {
		return replies, remote.Answer{Ran: true}
	}
	if refused != nil {
		if v := (conn.Value{Kind: resp.KindError, Str: refused.Error()}); routing.Untouched(v) {
			return nil, remote.Answer{V: v}
		}
	}
	if refused != nil {
		abort = fmt.Errorf("%w %w", abort, refused)
	}
	return nil, remote.Answer{Err: abort, Ran: true}
}

// allSame reports whether every reply is the same error. go-redis returns such replies
// when EXEC itself got that error.
func allSame(replies []conn.Value, v conn.Value) bool {
	for _, r := range replies {
		if r.Kind != resp.KindError || r.Str != v.Str {
			return false
		}
	}
	return true
}

// Watch implements Driver.
func (b *driver) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	if !b.calls.Enter() {
		return conn.ErrClosed
	}
	defer b.calls.Leave()
	if err := b.probe.Known(ctx); err != nil {
		return err
	}
	if b.nodes != nil {
		return b.nodes.watch(ctx, fn, keys)
	}
	var result error
	inside := false
	v, err := b.policy.Persist(ctx, "WATCH", func() remote.Answer {
		var a remote.Answer
		a, inside, result = watchOn(ctx, b.client, fn, keys)
		return a
	})
	switch {
	case inside:
		return result
	case err != nil:
		return err
	}
	return v.Err()
}

// watcher is a client that watches keys.
type watcher interface {
	Watch(ctx context.Context, fn func(*redis.Tx) error, keys ...string) error
}

// watchOn runs Conn.Watch on one server. inside reports that fn was called, and result is
// its error; if fn was not called, a has the reason. WATCH changes no data, so another try
// is safe.
func watchOn(ctx context.Context, c watcher, fn func(*conn.Watched) error, keys []string) (a remote.Answer, inside bool, result error) {
	err := c.Watch(ctx, func(tx *redis.Tx) error {
		if inside {
			return errTwice // a client that tries again by itself
		}
		inside = true
		result = fn(conn.NewWatched(
			func(ctx context.Context, args []any) (conn.Value, error) { return process(ctx, tx, args) },
			func(ctx context.Context, cmds [][]any) ([]conn.Value, error) { return watchedTx(ctx, tx, cmds) },
		))
		return result
	}, keys...)
	switch v, ok := errorValue(err); {
	case inside:
		return remote.Answer{Ran: true}, true, result
	case err == nil:
		return remote.Answer{Ran: true}, false, nil
	case ok:
		return remote.Answer{V: v, Ran: !routing.Untouched(v)}, false, nil
	}
	return remote.Answer{Err: lost(ctx, "WATCH", err)}, false, nil
}

// errTwice ends a Watch of a client that calls its function again.
var errTwice = errors.New("ebb: watch: the function has been called already")

// watchedTx runs execTx on the connection that watches.
func watchedTx(ctx context.Context, tx *redis.Tx, cmds [][]any) ([]conn.Value, error) {
	plain := make([][]any, len(cmds))
	for i, args := range cmds {
		var err error
		if plain[i], err = plainArgs(args); err != nil {
			return nil, err
		}
	}
	replies, a := execTx(ctx, tx.TxPipeline(), plain)
	if a.Err == nil && routing.Untouched(a.V) {
		return nil, policy.Refusal("transaction", a.V)
	}
	if w, waiting := waits(ctx, plain...); waiting && a.Ran && a.Err == nil {
		a = w.Check(a, send(ctx, tx, waitArgs(w)))
	}
	return replies, a.Err
}

// String implements Driver.
func (b *driver) String() string {
	caps := b.Capabilities()
	what := caps.Server
	if caps.Version != "" && !caps.Native {
		what += " " + caps.Version
	}
	if what == "" {
		what = "not reached yet"
	}
	size := 0
	how := "a server"
	switch {
	case b.nodes != nil:
		how, size = "a cluster", b.nodes.client.Options().PoolSize
		return fmt.Sprintf("%s (%s: %s, up to %d connections to each node)", b.name, how, what, size)
	case b.one != nil:
		size = b.one.Options().PoolSize
		if b.policy.Follows {
			how = "the master that Sentinel names"
		}
		return fmt.Sprintf("%s (%s: %s, up to %d connections)", b.name, how, what, size)
	}
	return fmt.Sprintf("%s (%s: %s)", b.name, how, what)
}

// Close implements Driver.
func (b *driver) Close() error {
	b.later.Close()
	b.mu.Lock()
	b.closed = true
	idle := b.blockers
	b.blockers = nil
	for k := range b.waiting {
		k.abort()
	}
	b.mu.Unlock()
	b.calls.Shut()
	b.calls.Wait()
	var err error
	if b.nodes != nil {
		err = b.nodes.close()
	}
	for _, k := range idle {
		err = errors.Join(err, k.client.Close())
	}
	if b.owned {
		err = errors.Join(err, b.client.Close())
	}
	if b.auto != nil {
		b.auto.close()
	}
	if b.nodes != nil {
		b.nodes.landed()
	}
	return err
}
