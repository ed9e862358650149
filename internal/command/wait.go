package command

import "github.com/ebbdb/ebb/internal/engine"

// Wait describes what a command waits for.
type Wait struct {
	// Keys are the keys whose change makes the server run the command again.
	Keys [][]byte
	// Kinds are the types that a key must hold for that; engine.None means no value.
	Kinds engine.Kinds
	// Want narrows what a key must hold, as engine.Ticket has it.
	Want engine.Want
	// Also are further keys that the command accesses when it runs.
	Also [][]byte
	// Millis is the longest wait in ms; 0: no limit.
	Millis int64
	// Passable lets later clients in line be served if this one cannot be.
	Passable bool
	// Relook makes the server check the later clients again when this one leaves unserved: a value
	// that was too little for it may be enough for the next.
	Relook bool
	// Undo takes back what the command was given if the connection ended before the reply was
	// written. It runs in a transaction of the command's keys.
	Undo func(*Ctx)
	// Refused writes the reply where commands may not wait: in a transaction or a script. By
	// default it is a null array.
	Refused func(*Ctx)
	// Expired writes the reply when the time is up; by default it is a null array.
	Expired func(*Ctx)
}

// Waiting is the state of a command that has waited and is run again.
type Waiting struct {
	Since int64     // us since 1970 when it began to wait
	Until int64     // ms since 1970 when its time is up; 0: no limit
	Memo  any       // a value that the command keeps for its Undo
	Key   [1][]byte // the key that has changed
}

// ErrBlocked is the error that the handler of a waiting command returns.
const ErrBlocked = ReplyError("ERR the command waits")

// Block makes the command wait, and returns the error that the handler is to
// return at once. The handler has written and changed nothing. It is run again,
// with another client's transaction, whenever a key has changed; where there
// still is nothing for it, it calls Block again and stays where it is.
func (c *Ctx) Block(w Wait) error {
	switch {
	case c.Waiting != nil:
		return ErrBlocked
	case c.NoWait || c.Host.Replaying():
		if w.Refused != nil {
			w.Refused(c)
		} else {
			c.Out.NullArray()
		}
		return nil
	}
	c.Host.Block(c, &w)
	return ErrBlocked
}

// Candidates returns those of a command's keys that it may read now. When the command is run again,
// this is the key that has changed. At first it is all keys except those whose contents will go to
// clients that have waited longer.
func (c *Ctx) Candidates(keys [][]byte) [][]byte {
	if c.Waiting != nil {
		return c.Waiting.Key[:]
	}
	if c.NoWait || c.DB.Waiters() == 0 {
		return keys
	}
	mine := keys
	for i, k := range keys {
		switch pending := c.Tx.Pending(k); {
		case pending && len(mine) == len(keys):
			mine = append([][]byte(nil), keys[:i]...)
		case !pending && len(mine) < len(keys):
			mine = append(mine, k)
		}
	}
	return mine
}

// Waited reports whether the command has waited and is run again.
func (c *Ctx) Waited() bool { return c.Waiting != nil }

// Since returns when the command began to wait, in us since 1970; 0 if it has not.
func (c *Ctx) Since() int64 {
	if c.Waiting == nil {
		return 0
	}
	return c.Waiting.Since
}

// Queued is a client that waits in line.
type Queued struct {
	Args   [][]byte // the request
	Client int64    // the client's number, as CLIENT ID says
	Since  int64    // us since 1970
}

// Queuer is an engine.Waiter that returns the request that waits.
type Queuer interface {
	Queued() (spec *Spec, q Queued)
}

// Queue returns the clients that wait for a key with a command of the same group, first come first.
// It costs O(clients).
func (c *Ctx) Queue(key []byte) (line []Queued) {
	for _, x := range c.Tx.Line(key) {
		if w, ok := x.(Queuer); ok {
			if spec, q := w.Queued(); spec.Group == c.Spec.Group {
				line = append(line, q)
			}
		}
	}
	return line
}

// Line returns the requests of Queue.
func (c *Ctx) Line(key []byte) (line [][][]byte) {
	for _, q := range c.Queue(key) {
		line = append(line, q.Args)
	}
	return line
}

// Behind is Tx.Behind for the client's command.
func (c *Ctx) Behind(key []byte, kind engine.Kind) bool {
	return c.Tx.Behind(key, kind, c.Waiting != nil)
}
