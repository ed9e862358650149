package ebb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ebbdb/ebb/resp"
)

// remote is the backend that talks to a server, through go-redis.
type remote struct {
	client *redis.Client
	opt    *redis.Options
	name   string // the URL, without its password
	caps   Capabilities

	mu       sync.Mutex // guards what follows
	blockers []*blocker // idle ones
	waiting  map[*blocker]struct{}
	closed   bool
	blocked  sync.WaitGroup // calls of block
}

func openRemote(ctx context.Context, rawURL string, o Options) (backend, error) {
	opt, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrURL, shown(rawURL), err)
	}
	opt.ContextTimeoutEnabled = true
	if opt.MaxRetries == 0 {
		opt.MaxRetries = -1 // a command that was sent may have run: never twice
	}
	opt.DialerRetries = 1 // the caller knows best what to do without a server
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if opt.TLSConfig != nil && o.TLS != nil {
		c := o.TLS.Clone()
		if c.ServerName == "" {
			c.ServerName = opt.TLSConfig.ServerName
		}
		opt.TLSConfig = c
	}
	if o.Dial != nil {
		opt.Dialer = dialer(o.Dial, opt.TLSConfig)
	}
	// The client completes its Options, and so gets a copy.
	own := *opt
	b := &remote{client: redis.NewClient(&own), opt: opt, name: shown(rawURL), waiting: map[*blocker]struct{}{}}
	if err := b.greet(ctx); err != nil {
		return nil, errors.Join(err, b.client.Close())
	}
	return b, nil
}

// dialer adds TLS to a dial function, as go-redis does for its own.
func dialer(dial func(context.Context, string, string) (net.Conn, error), c *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	if c == nil {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		t := tls.Client(nc, c)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		return t, nil
	}
}

// greet makes sure that a server is there, and learns what it is.
func (b *remote) greet(ctx context.Context) error {
	v, err := b.do(ctx, []any{"PING"})
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", b.name, err)
	}
	b.caps = Capabilities{Server: "redis"}
	info, err := b.do(ctx, []any{"INFO", "server"})
	if err != nil {
		return fmt.Errorf("open %s: %w", b.name, err)
	}
	for line := range strings.Lines(info.Str) { // empty where INFO is not allowed
		key, val, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "redis_version":
			b.caps.Version = val
		case "ebb_version":
			b.caps.Native, b.caps.Server = true, "ebb"
		}
	}
	return nil
}

// processor is a client, a transaction's connection, or a pipeline.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

func (b *remote) do(ctx context.Context, args []any) (Value, error) {
	return process(ctx, b.client, args)
}

// process runs one command.
func process(ctx context.Context, p processor, args []any) (Value, error) {
	plain, err := plainArgs(args)
	if err != nil {
		return Value{}, err
	}
	cmd := redis.NewCmd(ctx, plain...)
	_ = p.Process(ctx, cmd)
	return reply(ctx, cmd)
}

// plainArgs returns the arguments as go-redis writes them without a thought of
// its own; the name is a string.
func plainArgs(args []any) ([]any, error) {
	plain := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case string, int, int64, uint64:
			plain[i] = a
			continue
		case []byte:
			if i > 0 {
				plain[i] = a
				continue
			}
		}
		s, err := argText(a)
		if err != nil {
			return nil, err
		}
		plain[i] = s
	}
	return plain, nil
}

// reply returns what a command got. An error reply is a Value; an error means
// that there was no reply.
func reply(ctx context.Context, cmd *redis.Cmd) (Value, error) {
	x, err := cmd.Result()
	if err == nil {
		return valueOf(x), nil
	}
	if v, ok := errorValue(err); ok {
		return v, nil
	}
	if errors.Is(err, redis.ErrClosed) {
		return Value{}, ErrClosed
	}
	return Value{}, unavailable(ctx, cmd.Name(), err)
}

// errorValue turns what go-redis makes of null and error replies back.
func errorValue(err error) (Value, bool) {
	if errors.Is(err, redis.Nil) {
		return Value{Kind: resp.KindNull}, true
	}
	var r redis.Error
	if errors.As(err, &r) {
		return Value{Kind: resp.KindError, Str: r.Error()}, true
	}
	return Value{}, false
}

// valueOf turns what go-redis decoded into a Value. Map keys come sorted.
func valueOf(x any) Value {
	switch x := x.(type) {
	case nil:
		return Value{Kind: resp.KindNull}
	case string:
		return Value{Kind: resp.KindBulk, Str: x}
	case int64:
		return Value{Kind: resp.KindInt, Int: x}
	case float64:
		return Value{Kind: resp.KindDouble, Float: x}
	case bool:
		v := Value{Kind: resp.KindBool}
		if x {
			v.Int = 1
		}
		return v
	case error:
		if v, ok := errorValue(x); ok {
			return v
		}
		return Value{Kind: resp.KindError, Str: "ERR " + x.Error()}
	case []any:
		v := Value{Kind: resp.KindArray}
		for _, e := range x {
			v.Elems = append(v.Elems, valueOf(e))
		}
		return v
	case map[any]any:
		return mapValue(x)
	case interface{ String() string }: // big numbers
		return Value{Kind: resp.KindBigNumber, Str: x.String()}
	}
	return Value{Kind: resp.KindError, Str: fmt.Sprintf("ERR a reply of an unknown type, %T", x)}
}

func mapValue(m map[any]any) Value {
	type pair struct{ k, v Value }
	pairs := make([]pair, 0, len(m))
	for k, e := range m {
		pairs = append(pairs, pair{valueOf(k), valueOf(e)})
	}
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].k.String() < pairs[j].k.String() })
	v := Value{Kind: resp.KindMap}
	for _, p := range pairs {
		v.Elems = append(v.Elems, p.k, p.v)
	}
	return v
}

func (b *remote) pipeline(ctx context.Context, cmds [][]any) ([]Value, error) {
	return execPipe(ctx, b.client.Pipeline(), cmds)
}

// execPipe sends commands at once and collects their replies.
func execPipe(ctx context.Context, p redis.Pipeliner, cmds [][]any) ([]Value, error) {
	sent := make([]*redis.Cmd, len(cmds))
	for i, args := range cmds {
		plain, err := plainArgs(args)
		if err != nil {
			return nil, err
		}
		sent[i] = redis.NewCmd(ctx, plain...)
		_ = p.Process(ctx, sent[i])
	}
	_, _ = p.Exec(ctx) // its error is one of the commands'
	replies := make([]Value, len(cmds))
	for i, cmd := range sent {
		v, err := reply(ctx, cmd)
		if err != nil {
			return nil, err
		}
		replies[i] = v
	}
	return replies, nil
}

func (b *remote) tx(ctx context.Context, cmds [][]any) ([]Value, error) {
	return execTx(ctx, b.client.TxPipeline(), cmds)
}

// execTx runs commands between MULTI and EXEC.
func execTx(ctx context.Context, p redis.Pipeliner, cmds [][]any) ([]Value, error) {
	sent := make([]*redis.Cmd, len(cmds))
	for i, args := range cmds {
		plain, err := plainArgs(args)
		if err != nil {
			return nil, err
		}
		sent[i] = redis.NewCmd(ctx, plain...)
		_ = p.Process(ctx, sent[i])
	}
	_, whole := p.Exec(ctx)
	if errors.Is(whole, redis.TxFailedErr) {
		return nil, ErrConflict
	}
	replies := make([]Value, len(cmds))
	var abort, refused error
	for i, cmd := range sent {
		v, err := reply(ctx, cmd)
		if err != nil {
			return nil, err
		}
		replies[i] = v
		switch e := v.Err(); {
		case e == nil:
		case strings.HasPrefix(v.Str, "EXECABORT"):
			abort = e
		case refused == nil:
			refused = e
		}
	}
	if whole != nil && strings.HasPrefix(whole.Error(), "EXECABORT") {
		abort = ReplyError(whole.Error())
	}
	if abort != nil {
		return execReply(Value{Kind: resp.KindError, Str: abort.Error()}, refused)
	}
	return replies, nil
}

func (b *remote) watch(ctx context.Context, fn func(*Watched) error, keys []string) error {
	inside := false
	err := b.client.Watch(ctx, func(tx *redis.Tx) error {
		inside = true
		return fn(&Watched{
			runDo: func(ctx context.Context, args []any) (Value, error) { return process(ctx, tx, args) },
			runTx: func(ctx context.Context, cmds [][]any) ([]Value, error) { return execTx(ctx, tx.TxPipeline(), cmds) },
		})
	}, keys...)
	if err == nil || inside {
		return err
	}
	if v, ok := errorValue(err); ok {
		return v.Err()
	}
	if errors.Is(err, redis.ErrClosed) {
		return ErrClosed
	}
	return unavailable(ctx, "WATCH", err)
}

func (b *remote) capabilities() Capabilities { return b.caps }
func (b *remote) engine() *Engine            { return nil }

func (b *remote) String() string {
	what := b.caps.Server
	if b.caps.Version != "" && !b.caps.Native {
		what += " " + b.caps.Version
	}
	return fmt.Sprintf("%s (a server: %s, up to %d connections)", b.name, what, b.client.Options().PoolSize)
}

func (b *remote) close() error {
	b.mu.Lock()
	b.closed = true
	idle := b.blockers
	b.blockers = nil
	for k := range b.waiting {
		k.abort()
	}
	b.mu.Unlock()
	for _, k := range idle {
		k.client.Close()
	}
	b.blocked.Wait()
	return b.client.Close()
}
