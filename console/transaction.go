package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/resp"
)

// expectation is a value that a page has shown and that a batch must still find: the batch runs only if a
// read returns a value with that mark.
type expectation struct {
	Argv []blob `json:"argv"` // GET, HGET, LINDEX, ZSCORE or EXISTS
	Seen string `json:"seen"` // the mark of the value; "" for no value
}

// expected are the commands that an expectation may use. Each has one key, as its first argument.
var expected = []string{"get", "hget", "lindex", "zscore", "exists"}

// errChanged is the answer to a batch whose expectation does not hold.
var errChanged = &failure{status: http.StatusConflict, Code: "CHANGED",
	Text: "another client has changed the value meanwhile: nothing was changed"}

// markBytes is the length of a mark. It is long enough that two values do not have the same mark by chance.
const markBytes = 12

// markOf returns the mark of the reply to a read, "" for no value (nil and 0). It covers the words of the
// read, and of a long value the preview and the length. No client has the key of this run, without which a
// mark reveals nothing about the value. A mark also covers state: see stateOf.
func (c *Console) markOf(v resp.Value, state int64, argv ...string) string {
	text := v.Str
	switch {
	case v.IsNull(), v.Kind == resp.KindInt && v.Int == 0:
		return ""
	case v.Kind == resp.KindInt:
		text = text64(v.Int)
	case v.Kind == resp.KindDouble:
		text = scoreText(v)
	}
	sum := hmac.New(sha256.New, c.markKey[:])
	for _, a := range argv {
		writePart(sum, a, len(a))
	}
	writePart(sum, text64(state), 0)
	whole := len(text)
	if v.Kind != resp.KindInt && v.Int > int64(whole) {
		whole = int(v.Int)
	}
	writePart(sum, text[:min(len(text), previewBytes)], whole)
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:markBytes])
}

// stateOf returns a number that the marks of a key's values also cover; 0 if values are shown. If they are
// hidden, the number changes with each change of the key: otherwise a viewer could overwrite a value with a
// guess, and compare the marks. The caller must read the values afterwards.
func (c *Console) stateOf(db int, key string) int64 {
	if !c.opt.HideValues {
		return 0
	}
	return c.versions.of(db, key)
}

// writePart writes a length and a text, so that different lists of parts never give the same bytes.
func writePart(to interface{ Write(p []byte) (int, error) }, text string, n int) {
	_, _ = to.Write([]byte(text64(int64(n)) + " "))
	_, _ = to.Write([]byte(text))
}

// guarded runs a transaction if all expectations hold, atomically: it watches the keys, reads, and starts
// again if a key changes before EXEC.
func (k *call) guarded(q *request, cmds [][][]byte, all []expectation) ([]resp.Value, error) {
	reads := make([][][]byte, len(all))
	for i, x := range all {
		reads[i] = argvOf(x.Argv)
		spec := k.c.specOf(reads[i])
		if spec == nil || !slices.Contains(expected, spec.Name) {
			return nil, badRequest("expectation %d must be GET, HGET, LINDEX, ZSCORE or EXISTS, with its arguments", i)
		}
	}
	const tries = 3
	for range tries {
		if err := k.hold(q, reads, all); err != nil {
			return nil, err
		}
		replies, err := k.transaction(q, cmds)
		if !errors.Is(err, errNotRun) {
			return replies, err
		}
	}
	return nil, errChanged
}

// hold watches the keys of expectations and compares their values. The session watches the keys until EXEC;
// after an error it no longer watches them.
func (k *call) hold(q *request, reads [][][]byte, all []expectation) (err error) {
	defer func() {
		if err != nil && k.s.Do([]byte("UNWATCH")).Err() != nil {
			k.broken = true
		}
	}()
	for i, argv := range reads {
		if _, err = k.do(q.ctx, "WATCH", argv[1]); err != nil {
			return err
		}
		args, words := make([]any, len(argv)), make([]string, len(argv))
		for j, a := range argv {
			args[j], words[j] = a, string(a)
		}
		words[0] = k.c.specOf(argv).Name
		state := int64(0)
		if words[0] != "zscore" { // scores are shown
			state = k.c.stateOf(k.s.db, words[1])
		}
		v, err := k.do(q.ctx, args...)
		var wrong resp.ReplyError
		switch {
		case errors.As(err, &wrong) && wrong.Code() == "WRONGTYPE": // the key now has another type
			return errChanged
		case err != nil:
			return err
		case k.c.markOf(v, state, words...) != all[i].Seen:
			return errChanged
		}
	}
	return nil
}

// errNotRun is the error of a transaction whose EXEC did nothing, because a watched key has changed.
var errNotRun = &failure{status: http.StatusConflict, Text: "the transaction has not run"}

// transaction runs commands in MULTI and EXEC. If the server refuses to queue one of them, none runs, and
// that error is the answer.
func (k *call) transaction(q *request, cmds [][][]byte) ([]resp.Value, error) {
	began := k.c.clock.Micros()
	v, err := k.run(q.ctx, [][]byte{[]byte("MULTI")})
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, err
	}
	var refused error
	for i, argv := range cmds {
		if v, err = k.run(q.ctx, argv); err == nil {
			err = v.Err()
		}
		if err != nil {
			k.audit(argv, v, err, 0)
			refused = &failure{status: failureOf(err).status, Code: failureOf(err).Code,
				Text: "no command of the batch has run: number " + strconv.Itoa(i) + " was refused: " + err.Error()}
			break
		}
	}
	if refused != nil {
		if v := k.s.Do([]byte("DISCARD")); v.Err() != nil {
			k.broken = true
		}
		return nil, refused
	}
	if v, err = k.run(q.ctx, [][]byte{[]byte("EXEC")}); err != nil {
		k.broken = true // it may have ended before MULTI ended
	} else {
		err = v.Err()
	}
	if err == nil && len(v.Elems) != len(cmds) {
		err = errNotRun
	}
	us := k.c.clock.Micros() - began
	for i, argv := range cmds {
		one := resp.Value{}
		if err == nil {
			one = v.Elems[i]
		}
		k.audit(argv, one, err, us)
	}
	return v.Elems, err
}
