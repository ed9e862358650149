package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

const (
	surveyBatch = 1000        // commands in one pipeline: replies are small, and fit into the sockets' buffers
	surveyTells = time.Second // between two lines of progress
	surveyRest  = 100         // SCANs between two pauses of -i
	longestName = 1024        // bytes of a key's name in a line
)

// survey visits all keys of the database: SCAN names them, and one pipeline for each
// question asks about a batch of them. It ignores replies about a key that has expired or
// has changed its type meanwhile.
//
//	--bigkeys    TYPE, and STRLEN, LLEN, SCARD, HLEN, ZCARD or XLEN
//	--memkeys    TYPE, and MEMORY USAGE
//	--keystats   TYPE, MEMORY USAGE, and STRLEN or its like
//	--hotkeys    OBJECT FREQ
type survey struct {
	c        *client
	option   string // as the user gave it, for messages
	needs    string // the permissions it takes, as ACL SETUSER has them
	cursor   string // where SCAN goes on
	total    int64  // keys in the database when the survey began
	count    int64  // keys visited
	ctx      context.Context
	reported time.Time // when a line was printed last

	denied int64  // keys that the user may not read
	denial string // the server's reply about the last of them
}

// newSurvey returns a survey. It requests the number of keys from the server.
func (c *client) newSurvey(option, needs string) (*survey, error) {
	s := &survey{c: c, option: option, needs: needs, cursor: "0", ctx: c.ctx, reported: time.Now()}
	if c.opt.Cursor != "" {
		s.cursor = c.opt.Cursor
	}
	_, _ = c.conn.do("READONLY") // lets a replica in a cluster serve its keys; other servers refuse it
	v, err := c.conn.do("DBSIZE")
	if err != nil {
		return nil, s.trouble("DBSIZE", err)
	}
	s.total = v.Int
	return s, nil
}

// run calls visit with all keys, a batch at a time. It returns nil at the end, and also
// when Ctrl-C or the end of the context has interrupted it; over distinguishes the two.
// Ctrl-C also ends a batch that waits for replies, so it works when the server does not
// reply.
func (s *survey) run(visit func(keys []string) error) error {
	ctx, stop := signal.NotifyContext(s.c.ctx, os.Interrupt)
	defer stop()
	s.ctx = ctx
	cn := s.c.conn
	defer context.AfterFunc(ctx, func() {
		stop() // a second Ctrl-C ends the process
		cn.close()
	})()
	for round := 1; ; round++ {
		keys, err := s.scan()
		if err == nil && len(keys) > 0 {
			err = visit(keys)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case s.over():
			return nil
		}
		if round%surveyRest == 0 && !pause(ctx, s.c.opt.Interval) {
			return nil
		}
	}
}

// over reports whether all keys were seen.
func (s *survey) over() bool { return s.cursor == "" }

// scan returns the next keys and moves the cursor.
func (s *survey) scan() ([]string, error) {
	v, err := s.c.conn.do(s.c.scanArgs(s.cursor)...)
	if err != nil {
		return nil, s.trouble("SCAN", err)
	}
	if len(v.Elems) != 2 {
		return nil, fmt.Errorf("%s cannot read the server's reply to SCAN: %.100s", s.option, v)
	}
	keys, err := v.Elems[1].AsStrings()
	if err != nil {
		return nil, fmt.Errorf("%s cannot read the server's reply to SCAN: %w", s.option, err)
	}
	if s.cursor = v.Elems[0].String(); s.cursor == "0" {
		s.cursor = ""
	}
	return keys, nil
}

// ask sends one command for each key and returns the replies. If question returns nil, ask
// sends no command, and the reply is empty.
func (s *survey) ask(n int, question func(i int) []string) ([]resp.Value, error) {
	all := make([]resp.Value, n)
	for from := 0; from < n; from += surveyBatch {
		to := min(from+surveyBatch, n)
		var out []byte
		questions := make([][]string, to-from)
		for i := from; i < to; i++ {
			if q := question(i); q != nil {
				out = wire.AppendCommand(out, q...)
				questions[i-from] = q
			}
		}
		if _, err := s.c.conn.nc.Write(out); err != nil {
			return nil, s.trouble("", err)
		}
		for i := from; i < to; i++ {
			if questions[i-from] == nil {
				continue
			}
			v, err := s.c.conn.reply()
			if err != nil {
				return nil, s.trouble("", err)
			}
			if all[i], err = s.check(questions[i-from], v); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// check ignores errors about a single key: the key has another type now, has moved to
// another node, or this user may not read it. Other errors end the survey.
func (s *survey) check(question []string, v resp.Value) (resp.Value, error) {
	err := v.Err()
	if err == nil {
		return v, nil
	}
	var reply resp.ReplyError
	errors.As(err, &reply)
	switch code := reply.Code(); {
	case code == "WRONGTYPE" || code == "MOVED" || code == "ASK" || code == "TRYAGAIN":
		return resp.Value{}, nil
	case code == "NOPERM" && !strings.Contains(v.Str, " command"):
		s.denied++
		s.denial = v.Str
		return resp.Value{}, nil
	case strings.Contains(v.Str, "no such key"):
		return resp.Value{}, nil
	}
	return resp.Value{}, s.trouble(commandName(question), err)
}

// commandName returns the command that a permission names: two words such as MEMORY USAGE,
// or one such as TYPE.
func commandName(args []string) string {
	switch args[0] {
	case "MEMORY", "OBJECT":
		return args[0] + " " + args[1]
	}
	return args[0]
}

// trouble returns the message for an error of the connection or of a command.
func (s *survey) trouble(command string, err error) error {
	var reply resp.ReplyError
	switch {
	case !errors.As(err, &reply):
		return fmt.Errorf("%s ends after %d of about %d keys: %s", s.option, s.count, s.total, describe(err))
	case reply.Code() == "NOPERM":
		return fmt.Errorf("%s lacks the permission for %s: the server said '%s'. The user needs %s, and the keys' patterns.",
			s.option, command, reply, s.needs)
	case strings.Contains(string(reply), "LFU"):
		return fmt.Errorf("%s needs a server that counts accesses: the server said '%s'. Set maxmemory-policy to allkeys-lfu or "+
			"volatile-lfu.", s.option, reply)
	}
	return fmt.Errorf("%s ends: the server answered %s with '%s'.", s.option, command, reply)
}

// percent returns how much of the database was seen before this batch.
func (s *survey) percent() float64 {
	return 100 * float64(s.count) / float64(max(s.total, 1))
}

// progress prints the progress of the survey, if the last line is older than a second.
func (s *survey) progress() {
	if time.Since(s.reported) >= surveyTells {
		s.say("[%05.2f%%] Sampled %d keys so far\n", s.percent(), s.count)
	}
}

func (s *survey) say(format string, args ...any) {
	s.reported = time.Now()
	fmt.Fprintf(s.c.env.Out, format, args...)
}

// end prints the errors that the summary does not show, and returns the exit status.
func (s *survey) end(err error) int {
	if s.denied > 0 {
		fmt.Fprintf(s.c.env.Err, "%d answers are missing, since the user may not read all keys: the server said '%s'. "+
			"--pattern restricts %s to keys that the user may read.\n", s.denied, s.denial, s.option)
	}
	if err != nil {
		fmt.Fprintln(s.c.env.Err, "Error:", err)
		return 1
	}
	return 0
}

// shownName quotes a key's name; of a very long one it shows the beginning.
func shownName(key string) string {
	if len(key) <= longestName {
		return string(wire.AppendQuoted(nil, key))
	}
	return fmt.Sprintf("%s... (%d bytes)", wire.AppendQuoted(nil, key[:longestName]), len(key))
}
