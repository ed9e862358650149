package console

import (
	"fmt"
	"net/http"

	"github.com/ebbdb/ebb/resp"
)

// reply is the reply to a command, for a page.
type reply struct {
	Reply any     `json:"reply"`
	Text  string  `json:"text"` // as ebb cli prints it
	MS    float64 `json:"ms"`
	Error bool    `json:"error,omitempty"`
	Cut   bool    `json:"cut,omitempty"` // Reply does not contain all elements of the reply
	// Secret means that the request contains a password: no history keeps it.
	Secret bool `json:"secret,omitempty"`
}

// postDo answers POST api/do {db, argv, confirm}: the only way to write a single command.
func postDo(c *Console, q *request) (any, error) {
	var in struct {
		DB      int    `json:"db"`
		Argv    []blob `json:"argv"`
		Confirm string `json:"confirm"`
	}
	if err := q.body(&in); err != nil {
		return nil, err
	}
	argv := argvOf(in.Argv)
	if len(argv) == 0 {
		return nil, badRequest("argv is empty; it must be a command with its arguments")
	}
	a, err := c.doOne(q, in.DB, argv, in.Confirm)
	if c.secret(argv) {
		if a.Secret = true; err != nil {
			f := *failureOf(err)
			f.Secret, err = true, &f
		}
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// doOne runs the command of a viewer.
func (c *Console) doOne(q *request, db int, argv [][]byte, typed string) (a reply, err error) {
	k, err := c.from(q, db)
	if err != nil {
		return a, err
	}
	defer k.release()
	if err := k.pass(argv, typed); err != nil {
		return a, err
	}
	began := c.clock.Micros()
	v, err := k.run(q.ctx, argv)
	us := c.clock.Micros() - began
	k.audit(argv, v, err, us)
	if err != nil {
		return a, err
	}
	if e := v.Err(); e != nil && resp.ReplyError(v.Str).Code() == "NOPERM" {
		return a, e
	}
	hide := c.hidesReply(argv)
	short, room := shortener{room: replyBytes}, textBytes
	return reply{Reply: replyJSON(short.of(v), hide), Text: replyText(v, hide, &room), MS: float64(us) / 1000, Error: v.Kind == resp.KindError,
		Cut: short.cut}, nil
}

// maxBatch is the number of commands of a batch.
const maxBatch = 1000

// postBatch answers POST api/batch {db, cmds, atomic, expect, confirm}. It runs several commands in order,
// and as a transaction if atomic is set. An error reply does not stop the others. With expect the batch is
// atomic, and runs only if the values that the page has shown are unchanged.
func postBatch(c *Console, q *request) (any, error) {
	var in struct {
		DB      int      `json:"db"`
		Cmds    [][]blob `json:"cmds"`
		Atomic  bool     `json:"atomic"`
		Confirm string   `json:"confirm"`

		Expect []expectation `json:"expect"`
	}
	if err := q.body(&in); err != nil {
		return nil, err
	}
	if len(in.Cmds) == 0 || len(in.Cmds) > maxBatch || len(in.Expect) > maxBatch {
		return nil, badRequest("cmds has %d commands and %d expectations; it must have from 1 to %d commands, and at most as many",
			len(in.Cmds), len(in.Expect), maxBatch)
	}
	k, err := c.from(q, in.DB)
	if err != nil {
		return nil, err
	}
	defer k.release()
	cmds := make([][][]byte, len(in.Cmds))
	for i, cmd := range in.Cmds {
		if cmds[i] = argvOf(cmd); len(cmd) == 0 {
			return nil, badRequest("command %d of cmds is empty", i)
		}
		if err := k.pass(cmds[i], in.Confirm); err != nil {
			return nil, err
		}
	}
	if err := k.passTogether(cmds, in.Confirm); err != nil {
		return nil, err
	}
	var replies []resp.Value
	switch {
	case len(in.Expect) > 0:
		replies, err = k.guarded(q, cmds, in.Expect)
	case in.Atomic:
		replies, err = k.transaction(q, cmds)
	default:
		replies, err = k.runEach(q, cmds)
	}
	if err != nil {
		return nil, k.named(err)
	}
	out := struct {
		Replies []any    `json:"replies"`
		Text    []string `json:"text"`
		Cut     bool     `json:"cut,omitempty"` // as of api/do
	}{Replies: make([]any, len(replies)), Text: make([]string, len(replies))}
	short, room := shortener{room: replyBytes}, textBytes
	for i, v := range replies {
		hide := c.hidesReply(cmds[i])
		out.Replies[i], out.Text[i] = replyJSON(short.of(v), hide), replyText(v, hide, &room)
	}
	out.Cut = short.cut
	return out, nil
}

// minReply is the number of bytes that the console reads of a reply in a batch whose earlier replies have
// used up maxReply.
const minReply = 1 << 10

// batchTime is the longest time after which a batch begins another command.
const batchTime = 10_000_000 // us

// runEach runs commands one after the other. Of all replies together it reads about as much as of one reply.
// It ends with the request, and gives its share back between two commands, so that others do not wait for a
// long batch.
func (k *call) runEach(q *request, cmds [][][]byte) ([]resp.Value, error) {
	replies, room := make([]resp.Value, len(cmds)), maxReply
	k.batch, k.refused = true, 0
	defer k.endBatch()
	first := k.c.clock.Micros()
	for i, argv := range cmds {
		began := k.c.clock.Micros()
		if err := k.mayGoOn(q, began-first); err != nil {
			f := *failureOf(err)
			f.Text = fmt.Sprintf("%d of the %d commands of the batch have run: %s", i, len(cmds), f.Text)
			return nil, &f
		}
		bound := k.c.boundOf(argv)
		bound.Most = max(room, minReply)
		bound.Part = min(bound.Part, bound.Most/2)
		v, err := k.runSome(q.ctx, argv, bound)
		room -= sizeOf(v)
		k.audit(argv, v, err, k.c.clock.Micros()-began)
		if err != nil {
			return nil, err
		}
		replies[i] = v
	}
	return replies, nil
}

// mayGoOn lets other requests have the share of a batch that has run for took, in us, and takes a share
// again. It returns an error if the batch must end.
func (k *call) mayGoOn(q *request, took int64) error {
	if q.ctx.Err() != nil {
		return errClosing // or the client has left, and the answer does not matter
	}
	if took > batchTime {
		return &failure{status: http.StatusServiceUnavailable, Text: fmt.Sprintf("a batch may take %d s", batchTime/1_000_000)}
	}
	return q.shareAgain(k.c)
}

// sizeOf returns the approximate number of bytes of a reply.
func sizeOf(v resp.Value) int {
	n := 100 + len(v.Str)
	for _, e := range v.Elems {
		n += sizeOf(e)
	}
	return n
}

// pass applies the gate to a request of the viewer, and records a refusal in the audit.
func (k *call) pass(argv [][]byte, typed string) error {
	spec := k.c.specOf(argv)
	if spec == nil {
		return nil // the server replies that there is no such command
	}
	f := k.c.gate(spec, argv, typed)
	if f == nil {
		return nil
	}
	if f.Confirm == "" {
		k.addAudit(spec, argv, f.Text, 0, true)
	}
	return f
}
