package conn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
)

// Script is a Lua script, which a backend runs as one atomic command. It holds the text and its
// digest. Make it once; any Conn and any goroutine can use it.
type Script struct {
	text, sha string
}

// NewScript returns a script. The first run reports a text that does not compile.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Text returns the script's text. Servers cache it under the digest that SHA returns.
func (s *Script) Text() string { return s.text }

// SHA returns the SHA-1 digest of the text, as 40 hexadecimal digits.
func (s *Script) SHA() string { return s.sha }

// Script runs a script with its keys and other arguments, and returns its result; an error
// reply is also returned as the error, as in Do. It sends the digest, and sends the text only
// to a backend that does not have the script yet. Scripts of an embedded engine run in the
// caller's goroutine. The end of the context does not interrupt a script that has written.
func (c *Conn) Script(ctx context.Context, s *Script, keys []string, args ...any) (Value, error) {
	return c.script(ctx, "EVALSHA", "EVAL", s, keys, args)
}

// ScriptRO does the work of Script for scripts that only read. Replicas run them too, and a
// write in them is an error.
func (c *Conn) ScriptRO(ctx context.Context, s *Script, keys []string, args ...any) (Value, error) {
	return c.script(ctx, "EVALSHA_RO", "EVAL_RO", s, keys, args)
}

func (c *Conn) script(ctx context.Context, bySHA, byText string, s *Script, keys []string, args []any) (Value, error) {
	req := make([]any, 0, 3+len(keys)+len(args))
	req = append(req, bySHA, s.sha, len(keys))
	for _, k := range keys {
		req = append(req, k)
	}
	req = append(req, args...)
	v, err := c.Do(ctx, req...)
	if err == nil {
		return v, nil
	}
	if refused, ok := errors.AsType[ReplyError](err); ok && refused.Code() == "NOSCRIPT" {
		req[0], req[1] = byText, s.text
		v, err = c.Do(ctx, req...)
	}
	return v, err
}
