package docs_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bloom"
	"github.com/ebbdb/ebb/internal/config"
)

// figure is a number of limits.md and where it comes from: the constant dir.name, or the
// default of a directive if dir is "".
type figure struct {
	row       string // the first cell of the row
	text      string // the number, as the row has it
	dir, name string
	unit      int64 // what the constant counts in the unit of text; 0: 1
}

var figures = []figure{
	{"bytes of a key", "512 MiB", "", "proto-max-bulk-len", 0},
	{"bytes of a string", "512 MiB", "internal/engine", "maxString", 0},
	{"bytes of key and value in a slab's record", "16 KiB", "internal/arena", "MaxRecord", 0},
	{"records of one database in one shard", "granules of 8 bytes", "internal/arena", "granule", 0},
	{"databases", "16", "", "databases", 0},
	{"databases", "1,048,576", "internal/config", "maxDatabases", 0},
	{"HTTP connections", "256", "internal/adminhttp", "DefaultConnections", 0},
	{"bytes of names in a list", "128 KiB", "console", "nameBytes", 0},
	{"bytes of names in a list", "1 MiB", "console", "pageNames", 0},
	{"logins", "1,000", "console", "maxLogins", 0},
	{"logins", "100", "console", "userLogins", 0},
	{"entries of the audit", "1,000", "console", "maxAudit", 0},
	{"entries of the audit", "200", "console", "maxRefused", 0},
	{"latest deadline of a key", "2^48 - 1", "internal/engine", "MaxDeadline", 0},
	{"latest deadline of an item", "2^46 - 1", "internal/engine", "MaxItemDeadline", 0},
	{"engine time against a stepped wall clock", "1 %", "clock", "maxSlew", 10_000}, // parts per million
	{"rules of a database", "128", "internal/engine", "MaxRules", 0},
	{"entries of a rule's stream", "1,000,000", "internal/commands", "ruleMaxLen", 0},
	{"bytes of a value in an entry", "1,024", "internal/commands", "ruleMaxValue", 0},
	{"EXPIRY FORECAST", "1,000", "internal/commands", "maxBuckets", 0},
	{"keys with deadlines in a shard that FORECAST counts one by one", "4,096", "internal/engine", "forecastExact", 0},
	{"limit, BURST, COST", "2^50", "internal/limiter", "MaxTokens", 0},
	{"limit with ALGO log", "1,000,000", "internal/limiter", "MaxLogged", 0},
	{"period", "2^50", "internal/limiter", "MaxPeriod", 0},
	{"outstanding reservations of a key", "1,000", "internal/limiter", "MaxReservations", 0},
	{"a token in a payload of RESTORE", "30 days", "internal/engine", "maxAhead", 86_400e6}, // us
	{"permits", "2^31 - 1", "internal/engine", "MaxPermits", 0},
	{"priorities", "9", "internal/engine", "MaxPriority", 0},
	{"counted deliveries, and MAXDELIVERIES", "65,535", "internal/engine", "MaxDeliveries", 0},
	{"lease of DQ.POP without LEASE", "30,000", "internal/commands", "defaultLease", 0},
	{"leases and jobs whose time is over, settled by one command", "256", "internal/engine", "lapseMet", 0},
	{"leases and jobs whose time is over, settled by one command", "32 in a slice", "internal/engine", "lapseItems", 0},
	{"capacity", "2^30", "internal/bloom", "MaxCapacity", 0},
	{"EXPANSION", "32,768", "internal/bloom", "MaxExpansion", 0},
	{"layers, and bits of all together", "64", "internal/bloom", "maxLayers", 0},
	{"layers, and bits of all together", "4 GiB", "internal/bloom", "MaxBytes", 0},
	{"WINDOW", "2^45", "internal/bloom", "MaxWindow", 0},
	{"GENERATIONS", "64", "internal/bloom", "MaxGenerations", 0},
	{"arguments of a request", "1,048,576", "internal/wire", "defaultMaxArgs", 0},
	{"bytes of an argument", "512 MiB", "", "proto-max-bulk-len", 0},
	{"bytes of an inline request, or of a header line", "64 KiB", "internal/wire", "defaultMaxInline", 0},
	{"before AUTH", "10 arguments", "internal/wire", "unauthMaxArgs", 0},
	{"before AUTH", "16 KiB", "internal/wire", "unauthMaxBulk", 0},
	{"bytes of an unfinished request", "1 GiB", "", "client-query-buffer-limit", 0},
	{"unsent output at which ebb neither reads nor serves a connection", "64 MiB", "internal/reactor", "defaultHighWater", 0},
	{"connections", "10,000", "", "maxclients", 0},
	{"SCAN cursors", "2^38", "internal/engine", "maxCursor", 0},
	{"configuration file", "16 MiB", "internal/config", "maxFile", 0},
	{"reclaiming between two batches", "150 us", "internal/engine", "sliceTime", 0},
	{"reclaiming between two batches", "32 items", "internal/engine", "sliceItems", 0},
	{"due items of one container", "32 between", "internal/engine", "lapseItems", 0},
	{"due items of one container", "256 by", "internal/engine", "lapseMet", 0},
	{"compaction", "64", "internal/engine", "compactItems", 0},
	{"idle memory returned to the system", "8 slabs", "internal/engine", "trimSlabs", 0},
	{"idle memory returned to the system", "64 KiB", "internal/arena", "SlabSize", 0},
	{"bytes that a command reads on a network loop", "1 MiB", "internal/command", "LongBytes", 0},
	{"items of a small container", "16,777,215", "internal/packed", "MaxItems", 0},
	{"chunks of a large hash, set or sorted set", "64 KiB", "internal/chunk", "maxSize", 0},
	{"consumers of a group", "16,777,216", "internal/stream", "maxConsumers", 0},
	{"XADD and XTRIM with `~` and no LIMIT", "100 nodes", "", "stream-node-max-entries", 0},
	{"items that HRANDFIELD, SRANDMEMBER, ZRANDMEMBER pick with repetitions", "134,217,728", "internal/command", "MaxDraw", 0},
	{"keys remembered for client-side caching", "1,000,000", "", "tracking-table-max-keys", 0},
	{"entries of ACL LOG", "128", "", "acllog-max-len", 0},
	{"bits of ACL GENPASS", "4,096", "internal/servercmd", "maxPassBits", 0},
	{"calls in the slow log", "128,", "", "slowlog-max-len", 0},
	{"calls in the slow log", "128 bytes", "internal/admin", "ClipBytes", 0},
	{"samples of an event of LATENCY", "160", "internal/admin", "latencySamples", 0},
	{"bytes of the values of all scripts, and of all functions", "256 MiB", "", "script-memory-limit", 0},
	{"time after which other clients get BUSY", "5 s", "", "busy-reply-threshold", 1000},
	{"time between two checks whether a script was killed", "4,096 steps", "internal/script", "tickSteps", 0},
	{"time that FUNCTION LOAD and FUNCTION RESTORE may run code", "500", "internal/script", "LoadTimeout", 0},
	{"scripts that EVAL caches", "500", "internal/script", "maxScripts", 0},
	{"scripts that EVAL caches", "16 MiB", "internal/script", "maxScriptBytes", 0},
	{"nested calls in Lua", "16,384", "internal/lua", "maxFrames", 0},
	{"nested calls in Lua", "200", "internal/lua", "maxCalls", 0},
	{"values that a call of a builtin returns, such as `unpack`", "8,000", "internal/lua", "maxResults", 0},
	{"locals, upvalues of a function", "200", "internal/lua", "maxLocals", 0},
	{"locals, upvalues of a function", "60", "internal/lua", "maxUpvalues", 0},
	{"bytes of a string", "2^31 - 1", "internal/lua", "MaxString", 0},
	{"nested repetitions that a pattern tries", "20,000", "internal/lua", "maxMatchDepth", 0},
	{"error codes that INFO counts separately", "128", "internal/admin", "maxErrorCodes", 0},
	{"error codes that INFO counts separately", "31 bytes", "internal/admin", "maxErrorCode", 0},
	{"bytes that wait for the disk before ebb stops reading connections", "256 MiB", "internal/oplog", "maxBehind", 0},
	{"encoded bytes that wait in a snapshot before writers wait", "32 MiB", "internal/engine", "snapshotBuffer", 0},
	{"instants of the log, or of a master's stream, ahead of the clock", "1 hour", "", "max-clock-ahead", 3600},
	{"clock behind the files at a start", "1 hour", "internal/durable", "maxBehind", 3600e6}, // us
	{"bytes of the stream kept for replicas that reconnect", "1 MiB", "", "repl-backlog-size", 0},
	{"silence after which a link ends", "60 s", "", "repl-timeout", 0},
	{"bytes that a key of a compressed file unpacks to in `ebb check` and `ebb migrate`", "512 MiB", "internal/rdb", "maxEntry", 0},
	{"bytes that a key of a compressed file unpacks to in `ebb check` and `ebb migrate`", "255 times", "internal/rdb", "maxDensity", 0},
	{"shards", "64", "internal/engine", "maxShards", 0},
	{"shards", "16", "internal/engine", "minShards", 0},
	{"bytes of a key", "8 KiB", "internal/engine", "maxKey", 0},
	{"time to fill an empty limiter", "2^55", "internal/limiter", "maxFill", 0},
	{"limit with ALGO log", "1000000", "internal/limiter", "MaxLogged", 0},
	{"permits", "2147483647", "internal/engine", "MaxPermits", 0},
	{"priorities", "9`", "internal/engine", "MaxPriority", 0},
	{"replies that ebb's own client reads", "128 levels", "internal/wire", "defaultMaxDepth", 0},
	{"replies that ebb's own client reads", "16 Mi", "internal/wire", "defaultMaxValues", 0},
	{"replies that ebb's own client reads", "4 GiB", "internal/wire", "defaultMaxBytes", 0},
	{"output of one connection before the loop serves the others", "256 KiB", "internal/session", "yieldBytes", 0},
	{"chunks of a large hash, set or sorted set", "2^19", "internal/chunk", "maxPieces", 0},
	{"entries of a stream", "16 KiB", "internal/stream", "segmentMax", 0},
	{"XADD and XTRIM with `~` and no LIMIT", "100 nodes", "internal/commands", "trimNodes", 0},
	{"XADD and XTRIM with `~` and no LIMIT", "1,000,000", "internal/commands", "trimMost", 0},
	{"calls in the slow log", "32 arguments", "internal/admin", "slowArgs", 0},
	{"depth of a script's result", "7,994", "internal/script", "stackLimit", 0},
	{"RDB versions read", "12,", "internal/rdb", "Version", 0},
	{"RDB versions read", "80", "internal/rdb", "valkeyVersion", 0},
	{"RDB versions read", "81", "internal/rdb", "valkeyNewest", 0},
	{"RDB versions written", "10", "internal/rdb", "PlainVersion", 0},
	{"RDB versions written", "12", "internal/rdb", "Version", 0},
	{"bytes of subscriptions, watched keys, queues of MULTI, users and scripts together", "32 MiB", "internal/engine", "leastApart", 0},
	{"bytes that files and payloads of RESTORE unpack to", "255", "internal/engine", "honest", 0},
	{"bytes of the stream kept for replicas that reconnect", "16 KiB", "internal/config", "minBacklog", 0},
}

// computed is a figure of limits.md that follows from constants.
type computed struct {
	row, text string
	format    func(value func(dir, name string) int64) string
}

const (
	gib  = 1 << 30
	year = 31_556_952 // s, on average
)

func slabs(value func(dir, name string) int64) int64 {
	return value("internal/arena", "maxSlabs") * value("internal/arena", "SlabSize")
}

var computeds = []computed{
	{"records of one database in one shard", "32 GiB", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d GiB", slabs(v)/gib)
	}},
	{"records of one database in one shard", "2^32", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("2^%d", bits.Len64(uint64(slabs(v)/v("internal/arena", "granule")))-1)
	}},
	{"records of one database in one shard", "16 shards that is 512 GiB", func(v func(dir, name string) int64) string {
		n := v("internal/engine", "minShards")
		return fmt.Sprintf("%d shards that is %d GiB", n, n*slabs(v)/gib)
	}},
	{"latest deadline of a key", "in the year 10889", func(v func(dir, name string) int64) string {
		return fmt.Sprint("in the year ", time.UnixMilli(v("internal/engine", "MaxDeadline")).UTC().Year())
	}},
	{"latest deadline of an item", "in the year 4199", func(v func(dir, name string) int64) string {
		return fmt.Sprint("in the year ", time.UnixMilli(v("internal/engine", "MaxItemDeadline")).UTC().Year())
	}},
	{"keys with deadlines in a shard that FORECAST counts one by one",
		"256 ms within a minute, 65 s", func(v func(dir, name string) int64) string {
			slot := v("internal/wheel", "levelSize")
			return fmt.Sprintf("%d ms within a minute, %d s", slot, slot*slot/1000)
		}},
	{"period", "35 years", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d years", v("internal/limiter", "MaxPeriod")/1e6/year)
	}},
	{"time to fill an empty limiter", "1,141 years", func(v func(dir, name string) int64) string {
		n := v("internal/limiter", "maxFill") / 1e6 / year
		return fmt.Sprintf("%d,%03d years", n/1000, n%1000)
	}},
	{"tokens", "2^53 until the year 2255", func(v func(dir, name string) int64) string {
		n := v("internal/engine", "maxToken") + 1
		return fmt.Sprintf("2^%d until the year %d", bits.Len64(uint64(n))-1, time.UnixMicro(n).UTC().Year())
	}},
	{"chunks of a large hash, set or sorted set", "32 GiB", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d GiB", v("internal/chunk", "maxPieces")*v("internal/chunk", "maxSize")/gib)
	}},
	{"chunks of all containers", "1 TiB", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d TiB", v("internal/arena", "chunkSlabs")*v("internal/arena", "SlabSize")/gib/1024)
	}},
	{"a timeout of a waiting command", "290,000 years", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d0,000 years", v("internal/command", "maxWait")/1000/year/10_000)
	}},
	{"keys of a table in each of its parts", "2^26", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("2^%d", v("internal/lua", "maxSizeBits"))
	}},
	{"RDB versions read", "13 to 79", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d to %d", v("internal/rdb", "Version")+1, v("internal/rdb", "valkeyVersion")-1)
	}},
	{"queued output at which ebb closes a connection", "pub/sub 32 MiB, or 8 MiB for 60 s", func(func(dir, name string) int64) string {
		return "pub/sub " + outputLimit("pubsub")
	}},
	{"lag at which the master disconnects a replica", "256 MiB, or 64 MiB for 60 s", func(func(dir, name string) int64) string {
		return outputLimit("slave")
	}},
	{"requests under way that run commands", "12, of one user 4", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d, of one user %d", v("console", "allShares"), v("console", "userShares"))
	}},
	{"feeds", "128, of one user 40", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d, of one user %d", v("console", "allStreams"), v("console", "userStreams"))
	}},
	{"bytes that such a request reads of replies", "8 MiB", func(v func(dir, name string) int64) string {
		return fmt.Sprintf("%d MiB", 2*v("console", "pageBytes")>>20)
	}},
	{"error rate", "1e-12", func(func(dir, name string) int64) string { return fmt.Sprint(bloom.MinError) }},
}

// outputLimit describes the default of a class of client-output-buffer-limit.
func outputLimit(class string) string {
	words := strings.Fields(config.Lookup("client-output-buffer-limit").Default)
	i := slices.Index(words, class)
	hard, _ := strconv.ParseInt(words[i+1], 10, 64)
	soft, _ := strconv.ParseInt(words[i+2], 10, 64)
	return fmt.Sprintf("%d MiB, or %d MiB for %s s", hard>>20, soft>>20, words[i+3])
}

// uncompared are the numbers of limits.md that no constant has, and why.
var uncompared = []struct{ row, text, why string }{
	{"databases", "with 8 bytes", "the size of a pointer"},
	{"latest deadline of a key", "since 1970", "the epoch"},
	{"resolution", "1 ms", "the unit of deadlines"},
	{"requests under way that run commands", "for 5 s, then 429", "a duration, and a status of HTTP"},
	{"feeds", "429", "a status of HTTP"},
	{"memory of all requests together", "450 MB", "measured: 12 requests of 8 MiB, and their answers"},
	{"resolution", "1 us", "the unit of limiters"},
	{"period", "1 ms", "limiter.ErrPeriod has it"},
	{"limit with ALGO log", "12 to 24 bytes", "measured: docs/design/limiters.md"},
	{"jobs of a queue", "about 50 bytes", "measured by internal/delayq"},
	{"priorities", "0 to ", "the lowest"},
	{"permits", "between 1", "the lowest"},
	{"error rate", "above 0 and below 1,", "a probability"},
	{"time to fill an empty limiter", "1,000 years`", "the text of limiter.ErrLongFill, which rounds down"},
	{"an entry's id", "2^64-1 milliseconds, 2^64-1", "two uint64"},
	{"pending entries of a group", "56 bytes", "measured by internal/stream"},
	{"elements that one pop removes", "2^31-1", "math.MaxInt32: command.CountTo"},
	{"time between two checks whether a script was killed", "about 20 us", "measured: internal/script/machine.go"},
	{"RDB versions read", "1 to", "the first version"},
}

var number = regexp.MustCompile(`^([\d,]+)(?:\^(\d+))?( - 1)?(?: (KiB|MiB|GiB|Mi))?`)

// parseNumber reads a number as the page writes it: 16,384, 2^48 - 1, 64 KiB.
func parseNumber(s string) (int64, error) {
	m := number.FindStringSubmatch(s)
	if m == nil {
		if _, after, found := strings.Cut(s, " of "); found { // "granules of 8 bytes"
			return parseNumber(after)
		}
		return 0, fmt.Errorf("%q has no number", s)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
	if m[2] != "" {
		e, _ := strconv.Atoi(m[2])
		n = int64(math.Pow(float64(n), float64(e)))
	}
	if m[3] != "" {
		n--
	}
	return n * map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "Mi": 1 << 20, "GiB": 1 << 30}[m[4]], err
}

// constants evaluates the constants of packages from their source, also those that are not
// exported.
type constants struct {
	root string
	dirs map[string]map[string]ast.Expr
	fset *token.FileSet
}

func (c *constants) value(dir, name string) (constant.Value, error) {
	names, ok := c.dirs[dir]
	if !ok {
		names = map[string]ast.Expr{}
		c.dirs[dir] = names
		files, _ := filepath.Glob(filepath.Join(c.root, dir, "*.go"))
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
					for _, s := range d.Specs {
						s := s.(*ast.ValueSpec)
						for i, name := range s.Names {
							if i < len(s.Values) {
								names[name.Name] = s.Values[i]
							}
						}
					}
				}
				_, isFunc := n.(*ast.FuncDecl)
				return !isFunc
			})
		}
	}
	e, ok := names[name]
	if !ok {
		return nil, fmt.Errorf("%s has no constant %s", dir, name)
	}
	return c.eval(dir, e)
}

func (c *constants) eval(dir string, e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.ParenExpr:
		return c.eval(dir, e.X)
	case *ast.Ident:
		return c.value(dir, e.Name)
	case *ast.SelectorExpr:
		of := e.X.(*ast.Ident).Name
		if n, ok := map[string]int64{"MaxInt32": math.MaxInt32, "MaxInt64": math.MaxInt64}[e.Sel.Name]; of == "math" && ok {
			return constant.MakeInt64(n), nil
		}
		return c.value("internal/"+of, e.Sel.Name)
	case *ast.BinaryExpr:
		x, err := c.eval(dir, e.X)
		if err != nil {
			return nil, err
		}
		y, err := c.eval(dir, e.Y)
		if err != nil {
			return nil, err
		}
		switch e.Op {
		case token.SHL, token.SHR:
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n)), nil
		case token.QUO:
			return constant.BinaryOp(x, token.QUO_ASSIGN, y), nil // of integers
		}
		return constant.BinaryOp(x, e.Op, y), nil
	}
	return nil, fmt.Errorf("%s: an expression of type %T", dir, e)
}

func TestTheFiguresOfLimitsAreThoseOfTheCode(t *testing.T) {
	rows := limits(t)
	code := &constants{root: "..", dirs: map[string]map[string]ast.Expr{}, fset: token.NewFileSet()}
	for _, f := range figures {
		where := f.dir + "." + f.name
		if !strings.Contains(strings.Join(rows[f.row], ""), f.text) {
			t.Errorf("limits.md has no row %q with %q, which is %s", f.row, f.text, where)
			continue
		}
		want, err := parseNumber(f.text)
		if err != nil {
			t.Errorf("row %q: %v", f.row, err)
			continue
		}
		want *= max(f.unit, 1)
		var got int64
		if f.dir == "" {
			d := config.Lookup(f.name)
			if d == nil {
				t.Errorf("row %q: there is no directive %s", f.row, f.name)
				continue
			}
			size, _ := config.ParseMemory(d.Default)
			got = int64(size)
		} else {
			v, err := code.value(f.dir, f.name)
			if err != nil {
				t.Errorf("row %q: %v", f.row, err)
				continue
			}
			got, _ = constant.Int64Val(constant.ToInt(v))
		}
		if got != want {
			t.Errorf("row %q of limits.md says %s, which is %d; %s is %d", f.row, f.text, want, where, got)
		}
	}
}

// limits returns the rows of the page by their first cell, which two tables may share.
func limits(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			first := strings.TrimSpace(cells[1])
			rows[first] = append(rows[first], line)
		}
	}
	return rows
}

func TestTheComputedFiguresOfLimitsAreThoseOfTheCode(t *testing.T) {
	rows := limits(t)
	code := &constants{root: "..", dirs: map[string]map[string]ast.Expr{}, fset: token.NewFileSet()}
	value := func(dir, name string) int64 {
		v, err := code.value(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := constant.Int64Val(constant.ToInt(v))
		return n
	}
	for _, f := range computeds {
		if got := f.format(value); !strings.Contains(strings.Join(rows[f.row], ""), got) || got != f.text {
			t.Errorf("row %q of limits.md and of this test, which has %q, must say %q", f.row, f.text, got)
		}
	}
}

// Each number of the page is compared with the code by a test above, or listed with the reason why not.
func TestNoFigureOfLimitsIsUncompared(t *testing.T) {
	texts := map[string][]string{}
	for _, f := range figures {
		texts[f.row] = append(texts[f.row], f.text)
	}
	for _, f := range computeds {
		texts[f.row] = append(texts[f.row], f.text)
	}
	rows := limits(t)
	for _, f := range uncompared {
		texts[f.row] = append(texts[f.row], f.text)
		if !strings.Contains(strings.Join(rows[f.row], ""), f.text) {
			t.Errorf("limits.md has no row %q with %q, which has an exemption (%s)", f.row, f.text, f.why)
		}
	}
	for name, lines := range rows {
		// The longest text goes first, so that no other text leaves a part of it.
		slices.SortFunc(texts[name], func(a, b string) int { return len(b) - len(a) })
		for _, line := range lines {
			_, rest, _ := strings.Cut(line[1:], "|")
			for _, text := range texts[name] {
				rest = strings.ReplaceAll(rest, text, "")
			}
			if strings.ContainsAny(rest, "0123456789") {
				t.Errorf("row %q of limits.md has a number that no test compares with the code: %s", name, strings.TrimSpace(rest))
			}
		}
	}
}
