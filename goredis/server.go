// Package goredis is the conn.Driver of servers, through go-redis: one server, the master
// that Sentinel names, or the nodes of a cluster; ebb, Redis or Valkey.
//
//	open.go          URLs, options, Open and Wrap
//	server.go        commands, pipelines and transactions of one server
//	cluster.go       the same in a cluster: the node of the key, redirections
//	batch.go         pipelines in a cluster
//	fanout.go        commands that concern all masters of a cluster
//	autopipeline.go  what many goroutines send at the same time goes together
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
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
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
	follow bool          // the address changes: one that does not answer is worth another look
	owned  bool          // close closes client
	name   string        // the URL, without its password

	probe *routing.Learner[conn.Capabilities]
	calls gate

	mu       sync.Mutex // guards what follows
	blockers []*blocker // idle ones
	waiting  map[*blocker]struct{}
	closed   bool
}

// gate lets calls in until it is shut, and shut waits until the last is out.
type gate struct {
	in     atomic.Int64
	closed atomic.Bool
	last   chan struct{} // cap 1: the last may have left
}

// enter reports whether a call may come in, which then leaves. A call within another,
// of Watch's function, is refused rather than waited for.
func (g *gate) enter() bool {
	g.in.Add(1)
	if g.closed.Load() {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g.in.Add(-1) == 0 && g.closed.Load() {
		select {
		case g.last <- struct{}{}:
		default:
		}
	}
}

// shut is called once; it refuses the calls that come later.
func (g *gate) shut() {
	g.closed.Store(true)
	for g.in.Load() > 0 {
		<-g.last
	}
}

// persist tries until there is an answer that counts, or it was tried enough.
func (b *driver) persist(ctx context.Context, doing string, try func() answer) (conn.Value, error) {
	var a answer
	var r routing.Retry
	defer r.Stop()
	for r.Next(ctx) {
		a = try()
		if a.ran || a.err != nil && !b.worthwhile(ctx, a.err) || a.err == nil && !b.passes(a.v) {
			break
		}
	}
	return a.result(ctx, doing)
}

// worthwhile reports whether what could not be sent is worth another try.
func (b *driver) worthwhile(ctx context.Context, err error) bool {
	return b.follow && ctx.Err() == nil && errors.Is(err, conn.ErrUnavailable)
}

// passes reports whether a refusal may pass while we wait. A single server that
// is a replica stays one.
func (b *driver) passes(v conn.Value) bool {
	return routing.Untouched(v) && (b.follow || !strings.HasPrefix(v.Str, "READONLY"))
}

// processor is a client, a transaction's connection, or a pipeline.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Do implements Driver.
func (b *driver) Do(ctx context.Context, args []any) (conn.Value, error) {
	if !b.calls.enter() {
		return conn.Value{}, conn.ErrClosed
	}
	defer b.calls.leave()
	plain, err := b.prepare(ctx, args)
	if err != nil {
		return conn.Value{}, err
	}
	return b.run(ctx, plain)
}

// IntArgs implements IntArgsDriver.
func (b *driver) IntArgs(ctx context.Context, plain []any) (conn.Ints, error) {
	if !b.calls.enter() {
		return conn.Ints{}, conn.ErrClosed
	}
	defer b.calls.leave()
	if err := b.known(ctx); err != nil {
		return conn.Ints{}, err
	}
	if b.nodes != nil {
		return conn.IntsOf(b.nodes.do(ctx, plain))
	}
	var got *conn.Ints
	v, err := b.persist(ctx, named(plain), func() answer {
		a := b.send(ctx, plain, true)
		got = a.ints
		return a
	})
	if err == nil && got != nil {
		return *got, nil
	}
	return conn.IntsOf(v, err)
}

// run runs one command of plain arguments.
func (b *driver) run(ctx context.Context, plain []any) (conn.Value, error) {
	if b.nodes != nil {
		return b.nodes.do(ctx, plain)
	}
	return b.persist(ctx, named(plain), func() answer { return b.send(ctx, plain, false) })
}

// send runs one command, once, of a single server. ints: see tracked.
func (b *driver) send(ctx context.Context, plain []any, ints bool) answer {
	if b.auto != nil {
		return b.auto.send(ctx, plain, ints)
	}
	return sendFor(ctx, b.client, plain, ints)
}

// prepare returns the arguments as they are sent, after the backend is known.
func (b *driver) prepare(ctx context.Context, args []any) ([]any, error) {
	plain, err := plainArgs(args)
	if err != nil {
		return nil, err
	}
	return plain, b.known(ctx)
}

// send runs one command, once.
func send(ctx context.Context, p processor, plain []any) answer { return sendFor(ctx, p, plain, false) }

// sendFor is send, perhaps for integers: see tracked.
func sendFor(ctx context.Context, p processor, plain []any, ints bool) answer {
	if _, ok := waits(ctx, plain); ok {
		return sendAll(ctx, p.Pipeline(), [][]any{plain})[0]
	}
	cmd := newTracked(ctx, plain)
	cmd.ints = ints
	return cmd.answer(ctx, p.Process(ctx, cmd))
}

// process runs one command, once, on a connection of the caller's.
func process(ctx context.Context, p processor, args []any) (conn.Value, error) {
	plain, err := plainArgs(args)
	if err != nil {
		return conn.Value{}, err
	}
	a := send(ctx, p, plain)
	if a.err == nil && routing.Untouched(a.v) {
		a.err = refusal(named(plain), a.v)
	}
	return a.v, a.err
}

// plainCommands is plainArgs for a batch.
func (b *driver) plainCommands(ctx context.Context, cmds [][]any) ([][]any, error) {
	plain := make([][]any, len(cmds))
	for i, args := range cmds {
		var err error
		if plain[i], err = plainArgs(args); err != nil {
			return nil, err
		}
	}
	return plain, b.known(ctx)
}

// Pipeline implements Driver.
func (b *driver) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if !b.calls.enter() {
		return nil, conn.ErrClosed
	}
	defer b.calls.leave()
	plain, err := b.plainCommands(ctx, cmds)
	if err != nil {
		return nil, err
	}
	if b.nodes != nil {
		return b.nodes.pipeline(ctx, plain)
	}
	var answers []answer
	_, err = b.persist(ctx, "pipeline", func() answer {
		answers = sendAll(ctx, b.client.Pipeline(), plain)
		return together(answers)
	})
	if err != nil {
		return nil, err // nothing ran, or what did is unknown
	}
	return values(answers)
}

// values returns the replies of a batch.
func values(answers []answer) ([]conn.Value, error) {
	replies := make([]conn.Value, len(answers))
	for i, a := range answers {
		if a.err != nil {
			return nil, a.err
		}
		replies[i] = a.v
	}
	return replies, nil
}

// sendAll sends commands at once, over one connection, and collects what came of
// each; the replicas are waited for at the end.
func sendAll(ctx context.Context, p redis.Pipeliner, plain [][]any) []answer {
	w, waiting := waits(ctx, plain...)
	if waiting {
		plain = append(plain[:len(plain):len(plain)], w.args())
	}
	sent := make([]*tracked, len(plain))
	for i, args := range plain {
		sent[i] = newTracked(ctx, args)
		_ = p.Process(ctx, sent[i])
	}
	_, whole := p.Exec(ctx)
	answers := make([]answer, len(plain))
	for i, cmd := range sent {
		answers[i] = cmd.answer(ctx, whole)
	}
	if waiting {
		last := len(answers) - 1
		for i := range last {
			if conn.MayWrite(plain[i]) {
				answers[i] = w.check(answers[i], answers[last])
			}
		}
		answers = answers[:last]
	}
	return answers
}

// together is what came of a batch: it ran if any of it may have.
func together(answers []answer) answer {
	for _, a := range answers {
		if a.ran {
			return a
		}
	}
	return answers[0]
}

// Tx implements Driver.
func (b *driver) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	if !b.calls.enter() {
		return nil, conn.ErrClosed
	}
	defer b.calls.leave()
	plain, err := b.plainCommands(ctx, cmds)
	if err != nil {
		return nil, err
	}
	if b.nodes != nil {
		return b.nodes.tx(ctx, plain)
	}
	var replies []conn.Value
	_, err = b.persist(ctx, "transaction", func() answer {
		var a answer
		if b.one != nil {
			replies, a = txOn(ctx, b.one, false, plain)
		} else {
			replies, a = execTx(ctx, b.client.TxPipeline(), plain)
		}
		return a
	})
	return replies, err
}

// txOn runs commands between MULTI and EXEC on a server, once, after ASKING if a
// node has redirected us.
func txOn(ctx context.Context, node *redis.Client, ask bool, plain [][]any) ([]conn.Value, answer) {
	w, waiting := waits(ctx, plain...)
	if !ask && !waiting {
		return execTx(ctx, node.TxPipeline(), plain)
	}
	own := node.Conn() // ASKING and WAIT go by the connection
	defer func() { _ = own.Close() }()
	if ask { // it holds for the transaction that follows
		if a := send(ctx, own, []any{"ASKING"}); a.err != nil {
			return nil, answer{err: a.err}
		}
	}
	replies, a := execTx(ctx, own.TxPipeline(), plain)
	if waiting && a.ran && a.err == nil {
		a = w.check(a, send(ctx, own, w.args()))
	}
	return replies, a
}

// execTx runs commands between MULTI and EXEC, once. The answer is that of the
// whole: its Value is an error if a reply refused it, or one of its commands,
// for a reason that passes.
func execTx(ctx context.Context, p redis.Pipeliner, plain [][]any) ([]conn.Value, answer) {
	sent := make([]*tracked, len(plain))
	for i, args := range plain {
		sent[i] = newTracked(ctx, args)
		_ = p.Process(ctx, sent[i])
	}
	_, whole := p.Exec(ctx)
	if errors.Is(whole, redis.TxFailedErr) {
		return nil, answer{err: conn.ErrConflict, ran: true}
	}
	replies := make([]conn.Value, len(plain))
	var abort, refused error
	for i, cmd := range sent {
		a := cmd.answer(ctx, whole)
		if a.err != nil {
			return nil, a
		}
		replies[i] = a.v
		switch e := a.v.Err(); {
		case e == nil:
		case strings.HasPrefix(a.v.Str, "EXECABORT"):
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
			return nil, answer{v: v} // EXEC itself was refused
		}
	}
	if abort == nil {
		return replies, answer{ran: true}
	}
	if refused != nil {
		if v := (conn.Value{Kind: resp.KindError, Str: refused.Error()}); routing.Untouched(v) {
			return nil, answer{v: v}
		}
	}
	if refused != nil {
		abort = fmt.Errorf("%w %w", abort, refused)
	}
	return nil, answer{err: abort, ran: true}
}

// allSame reports whether every reply is the same error, as go-redis has it when
// EXEC itself got that error.
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
	if !b.calls.enter() {
		return conn.ErrClosed
	}
	defer b.calls.leave()
	if err := b.known(ctx); err != nil {
		return err
	}
	if b.nodes != nil {
		return b.nodes.watch(ctx, fn, keys)
	}
	var result error
	inside := false
	v, err := b.persist(ctx, "WATCH", func() answer {
		var a answer
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

// watchOn is Conn.Watch on one server. inside says that fn was called, and
// result is what it returned; if not, a says why not. WATCH changes nothing, and
// leaves nothing: another try does no harm.
func watchOn(ctx context.Context, c watcher, fn func(*conn.Watched) error, keys []string) (a answer, inside bool, result error) {
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
		return answer{ran: true}, true, result
	case err == nil:
		return answer{ran: true}, false, nil
	case ok:
		return answer{v: v, ran: !routing.Untouched(v)}, false, nil
	}
	return answer{err: lost(ctx, "WATCH", err)}, false, nil
}

// errTwice ends a Watch of a client that calls its function again.
var errTwice = errors.New("ebb: watch: the function has been called already")

// watchedTx is execTx on the connection that watches.
func watchedTx(ctx context.Context, tx *redis.Tx, cmds [][]any) ([]conn.Value, error) {
	plain := make([][]any, len(cmds))
	for i, args := range cmds {
		var err error
		if plain[i], err = plainArgs(args); err != nil {
			return nil, err
		}
	}
	replies, a := execTx(ctx, tx.TxPipeline(), plain)
	if a.err == nil && routing.Untouched(a.v) {
		return nil, refusal("transaction", a.v)
	}
	if w, waiting := waits(ctx, plain...); waiting && a.ran && a.err == nil {
		a = w.check(a, send(ctx, tx, w.args()))
	}
	return replies, a.err
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
		if b.follow {
			how = "the master that Sentinel names"
		}
		return fmt.Sprintf("%s (%s: %s, up to %d connections)", b.name, how, what, size)
	}
	return fmt.Sprintf("%s (%s: %s)", b.name, how, what)
}

// Close implements Driver.
func (b *driver) Close() error {
	b.mu.Lock()
	b.closed = true
	idle := b.blockers
	b.blockers = nil
	for k := range b.waiting {
		k.abort()
	}
	b.mu.Unlock()
	b.calls.shut()
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
