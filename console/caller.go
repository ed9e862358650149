package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

const (
	// commandTime is the longest time for which a command may wait, or run a script that has written nothing.
	commandTime = 10 * time.Second
	// maxReply is the number of bytes of a reply that the console reads, and maxReplyPart the number of bytes of
	// one text in it. A page gets less: see replyBytes. A page of items has up to pageBytes.
	maxReply     = 2 * pageBytes
	maxReplyPart = nameBytes + 1
)

// call is a session that runs the commands of one viewer, in one database. Reads through it change
// neither idle times nor sliding deadlines. One goroutine at a time uses it; release ends it.
type call struct {
	c *Console
	v *viewer
	s *viewerSession
	// addr is the address of the HTTP client, for the audit.
	addr string
	// broken means that the state of the session is unknown: no other call may use it.
	broken bool
	// batch means that the commands belong to a batch; refused is the number of refused ones.
	batch   bool
	refused int
	// truncated means that the reply to the last command was longer than maxReply.
	truncated bool
	// denied names the commands that allowed has refused, once each: a screen shows what the user may see, and
	// names the missing rights.
	denied []string
}

// as borrows a session of a viewer. The caller must release it.
func (c *Console) as(v *viewer, db int) (*call, error) {
	s, err := v.borrow()
	if err != nil {
		return nil, err
	}
	k := &call{c: c, v: v, s: s, addr: v.addr}
	if err := k.selectDB(db); err != nil {
		k.release()
		return nil, err
	}
	return k, nil
}

// selectDB selects a database for the following commands. The user needs the permission for SELECT, unless
// the session is already in the database.
func (k *call) selectDB(db int) error {
	if db == k.s.db {
		return nil
	}
	if n := k.c.svc.DB.Databases(); db < 0 || db >= n {
		return badRequest("db is %d; it must be from 0 to %d", db, n-1)
	}
	v, err := k.s.DoContext(context.Background(), []byte("SELECT"), strconv.AppendInt(nil, int64(db), 10))
	if err = errors.Join(err, v.Err()); err == nil {
		k.s.db = db
	}
	return err
}

// release returns the session to the viewer.
func (k *call) release() {
	if k.broken {
		k.s.Closed(nil)
		return
	}
	k.v.returnSession(k.s)
}

// do runs a command that the console itself needs for a screen, and returns its reply. An argument is a
// string, a []byte, an int or an int64. The error is an error reply, a context's error, or a *failure. do
// does not run a command that the user may not run: it returns errNotAllowed, and no log records the command;
// see denied. An error reply does not count in statistics either, because no client has sent the command.
func (k *call) do(ctx context.Context, args ...any) (resp.Value, error) {
	argv, err := words(args)
	if err != nil {
		return resp.Value{}, err
	}
	if !k.allowed(argv) {
		return resp.Value{}, errNotAllowed
	}
	argv = k.c.called(argv)
	k.s.SetUncounted(true)
	v, err := k.run(ctx, argv)
	k.s.SetUncounted(false)
	if err == nil {
		err = v.Err()
	}
	var refused resp.ReplyError
	if errors.As(err, &refused) && refused.Code() == "NOPERM" { // the rules have changed since
		k.deny(argv)
		return resp.Value{}, errNotAllowed
	}
	return v, err
}

// named returns an error of do with the names of the commands that the user may not run, and the rule that allows the first.
func (k *call) named(err error) error {
	if err != errNotAllowed || len(k.denied) == 0 {
		return err
	}
	rule := "+" + strings.ToLower(strings.ReplaceAll(k.denied[0], " ", "|"))
	return &failure{status: http.StatusForbidden, Code: "NOPERM", Command: k.denied[0], Rule: rule,
		Text: "the user may not run " + k.denied[0] + ": the ACL rule " + rule + " allows it"}
}

// allowed reports whether the user may run a command. If not, it records the command as denied.
func (k *call) allowed(argv [][]byte) bool {
	ok := false
	if own := k.c.called(argv); own != nil {
		ok, _ = k.v.id.May(own)
	}
	if !ok {
		k.deny(argv)
	}
	return ok
}

// called returns a request of the console itself under the name by which clients call its command:
// rename-command may have changed the name. It returns nil if the command was removed.
func (c *Console) called(argv [][]byte) [][]byte {
	s, err := c.svc.Table().FindOwn(argv)
	if err != nil {
		return argv // the server replies that there is no such command
	}
	if top := s.Parent(); top != nil {
		s = top
	}
	switch name := s.Called(); {
	case name == "":
		return nil
	case strings.EqualFold(name, string(argv[0])):
		return argv
	default:
		return append([][]byte{[]byte(name)}, argv[1:]...)
	}
}

// deny records a command that the user may not run.
func (k *call) deny(argv [][]byte) {
	name := strings.ToUpper(string(argv[0]))
	if s, err := k.c.svc.Table().FindOwn(argv); err == nil {
		name = strings.ToUpper(strings.ReplaceAll(s.Name, "|", " "))
	}
	if !slices.Contains(k.denied, name) {
		k.denied = append(k.denied, name)
	}
}

// run runs a command and returns its reply, or the beginning of a long one: see boundOf. It ends a waiting
// command after commandTime.
func (k *call) run(ctx context.Context, argv [][]byte) (resp.Value, error) {
	return k.runSome(ctx, argv, k.c.boundOf(argv))
}

// boundOf returns the bound of the part that the console reads of the reply to a request. Texts of values and
// names are cut; texts of the server itself, such as CLIENT LIST, are not.
func (c *Console) boundOf(argv [][]byte) wire.Bound {
	b := wire.Bound{Most: maxReply, Part: maxReply}
	spec := c.specOf(argv)
	if spec == nil || spec.HasKeys() || spec.Flags&(command.ReadOnly|command.Scripts) != 0 || spec.Name == "exec" {
		b.Part = maxReplyPart
	}
	return b
}

// errLong is the response to a command if even the beginning of its reply is longer than the console reads.
var errLong = &failure{status: http.StatusRequestEntityTooLarge,
	Text: fmt.Sprintf("the reply has one text of more than %d MiB, which is more than the console reads", maxReply>>20)}

// runSome runs a command and reads a bounded part of its reply. truncated reports afterwards whether there was more.
func (k *call) runSome(ctx context.Context, argv [][]byte, limit wire.Bound) (resp.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	v, cut, err := k.s.DoSome(ctx, limit, argv...)
	k.truncated = cut
	switch {
	case err == nil && cut && v.Kind == 0:
		return v, errLong
	case err == nil:
		return v, nil
	case errors.Is(err, context.DeadlineExceeded):
		return v, &failure{status: 504, Text: "the command waited for more than " + commandTime.String() + ", and the console has ended it"}
	case errors.Is(err, engine.ErrClosed):
		return v, errClosing
	}
	return v, err
}

// words converts the arguments of a command.
func words(args []any) ([][]byte, error) {
	argv := make([][]byte, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			argv[i] = []byte(a)
		case []byte:
			argv[i] = a
		case int:
			argv[i] = strconv.AppendInt(nil, int64(a), 10)
		case int64:
			argv[i] = strconv.AppendInt(nil, a, 10)
		default:
			return nil, fmt.Errorf("console: argument %d of a command is a %T, and must be a string, a []byte, an int or an int64", i, a)
		}
	}
	return argv, nil
}

// specOf returns the Spec of a request. It returns nil if the server has no such command, or if the number of
// arguments is wrong: then the server refuses the request itself.
func (c *Console) specOf(argv [][]byte) *command.Spec {
	s, err := c.svc.Table().Resolve(argv)
	if err != nil {
		return nil
	}
	return s
}

// display returns a command's name as users type it.
func display(s *command.Spec) string { return strings.ToUpper(strings.ReplaceAll(s.Name, "|", " ")) }
