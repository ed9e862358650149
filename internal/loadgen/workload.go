package loadgen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
)

// Test is a request to repeat. Its arguments may hold
//
//	__rand_int__   twelve digits, new ones in every request
//	__key__        key: and twelve digits
//	__data__       Config.Size bytes, always the same
//
// Follow is a second request that is sent when the first has been answered; both
// count as one. Its arguments may hold the same, the random number being that of
// the first, and
//
//	__reply_0__    the first string or number of the first one's reply; _1_ the second ...
//
// Where the first reply has too few there is no second request.
//
// Behind is a request that is sent behind each one, or with Once behind each batch, in the closed loop. It does not count as a request.
type Test struct {
	Name   string
	Args   []string
	Follow []string
	Behind []string
	Once   bool
}

// standard lists the tests that have a name.
var standard = []Test{
	{Name: "ping", Args: []string{"PING"}},
	{Name: "set", Args: []string{"SET", "__key__", "__data__"}},
	{Name: "setex", Args: []string{"SET", "__key__", "__data__", "EX", "3600"}},
	{Name: "get", Args: []string{"GET", "__key__"}},
	{Name: "incr", Args: []string{"INCR", "counter:__rand_int__"}},
	{Name: "mset", Args: append([]string{"MSET"}, slices.Repeat([]string{"__key__", "__data__"}, 10)...)},
	{Name: "mget", Args: append([]string{"MGET"}, slices.Repeat([]string{"__key__"}, 10)...)},
	{Name: "expire", Args: []string{"EXPIRE", "__key__", "3600"}},
	{Name: "ttl", Args: []string{"TTL", "__key__"}},
	{Name: "del", Args: []string{"DEL", "__key__"}},
	{Name: "lpush", Args: []string{"LPUSH", "mylist", "__data__"}},
	{Name: "rpush", Args: []string{"RPUSH", "mylist", "__data__"}},
	{Name: "lpop", Args: []string{"LPOP", "mylist"}},
	{Name: "rpop", Args: []string{"RPOP", "mylist"}},
	{Name: "sadd", Args: []string{"SADD", "myset", "element:__rand_int__"}},
	{Name: "spop", Args: []string{"SPOP", "myset"}},
	{Name: "hset", Args: []string{"HSET", "myhash", "element:__rand_int__", "__data__"}},
	{Name: "hget", Args: []string{"HGET", "myhash", "element:__rand_int__"}},
	{Name: "zadd", Args: []string{"ZADD", "myzset", "__rand_int__", "element:__rand_int__"}},
	{Name: "zpopmin", Args: []string{"ZPOPMIN", "myzset"}},
	{Name: "xadd", Args: []string{"XADD", "mystream", "*", "myfield", "__data__"}},
	{Name: "lrange_100", Args: []string{"LRANGE", "mylist", "0", "99"}},
	{Name: "lrange_300", Args: []string{"LRANGE", "mylist", "0", "299"}},
	{Name: "lrange_500", Args: []string{"LRANGE", "mylist", "0", "499"}},
	{Name: "lrange_600", Args: []string{"LRANGE", "mylist", "0", "599"}},
}

// DefaultTests lists the tests of a run that names none.
const DefaultTests = "ping,set,get,incr,mset,expire"

// Names returns the names of the standard tests.
func Names() []string {
	names := make([]string, len(standard))
	for i, t := range standard {
		names[i] = t.Name
	}
	return names
}

// Tests returns the standard tests of a comma-separated list. Those that read the list mylist have lpush before them, which fills it.
func Tests(list string) ([]Test, error) {
	var tests []Test
	list = strings.ToLower(list)
	if strings.Contains(list, "lrange_") && !strings.Contains(list, "push") {
		list = strings.Replace(list, "lrange_", "lpush,lrange_", 1)
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(standard, func(t Test) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown test %q; known are %s", name, strings.Join(Names(), ", "))
		}
		tests = append(tests, standard[i])
	}
	return tests, nil
}

// Custom returns a test of a command given as arguments.
func Custom(args []string) Test {
	name := strings.Join(args, " ")
	if len(name) > 16 {
		name = name[:13] + "..."
	}
	return Test{Name: name, Args: slices.Clone(args)}
}

// digits is the number of digits of a random number. With a fixed width the lengths in an
// encoded request never change.
const digits = 12

// request is a batch of requests, encoded once; before each use fresh digits
// are written over the old ones.
type request struct {
	buf     []byte // copies of one request
	size    int    // of one
	numbers []int  // offsets in one of the digits
	replies int    // to one
	tail    []byte // a request that is sent behind each batch
}

func (t Test) encode(copies, dataSize int) *request {
	zeros := strings.Repeat("0", digits)
	mark := strings.Repeat("\x00", digits) // no argument can come with it on a command line
	fill := strings.NewReplacer("__rand_int__", mark, "__key__", "key:"+mark, "__data__", strings.Repeat("x", dataSize))
	args := make([]string, len(t.Args))
	for i, a := range t.Args {
		args[i] = fill.Replace(a)
	}
	one := wire.AppendCommand(nil, args...)
	r := &request{replies: 1}
	switch {
	case t.Once:
		r.tail = wire.AppendCommand(nil, t.Behind...)
	case t.Behind != nil:
		one = wire.AppendCommand(one, t.Behind...)
		r.replies++
	}
	r.size = len(one)
	for at := 0; ; {
		i := bytes.Index(one[at:], []byte(mark))
		if i < 0 {
			break
		}
		at += i
		r.numbers = append(r.numbers, at)
		copy(one[at:], zeros)
	}
	r.buf = bytes.Repeat(one, copies)
	return r
}

// batch returns n encoded requests with fresh numbers below keyspace, valid
// until the next call.
func (r *request) batch(n int, rng *rand.Rand, keyspace int) []byte {
	for i := range n {
		for _, at := range r.numbers {
			put(r.buf[i*r.size+at:], rng.Uint64N(uint64(keyspace)))
		}
	}
	return r.buf[:n*r.size]
}

// put writes v in decimal, digits wide.
func put(dst []byte, v uint64) {
	for i := digits - 1; i >= 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
}
