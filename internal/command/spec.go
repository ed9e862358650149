package command

import (
	"math/bits"
	"slices"
	"strings"
)

// Spec describes one command completely: what COMMAND INFO and COMMAND DOCS
// say, how its arguments are read, where its keys stand, what it does, and
// examples that run. Everything that can be derived is derived by NewTable:
//
//	Args ──> arity, key specs, first/last/step, usage line, Match, Generate
//	Flags, Group, Categories ──> ACL categories
//	Examples ──> a transcript that is tested and printed on the command's page
//
// A Spec is written once as a package variable and never changed; a Table works
// on its own copy, so any number of tables may be built from the same specs, on
// any goroutine. Methods that give derived values are valid on a table's specs.
type Spec struct {
	// Name is lower case; a subcommand's is the full name, "config|get".
	Name string
	// Group is the heading the command stands under in the documentation.
	Group Group
	// Since is the version of Redis that introduced the command, or of ebb for
	// our own.
	Since string
	// Complexity is in the usual form: "O(N) where N is ...".
	Complexity string
	// Summary is one sentence that ends in a full stop.
	Summary string
	// Flags steer dispatch and are shown by COMMAND INFO.
	Flags Flags
	// Lacks returns those of Flags that a request does not have; nil: each has all. See FlagsOf.
	Lacks func(args [][]byte) Flags
	// Args is the grammar of the arguments behind the (sub)command's name.
	Args []Arg
	// Examples is a transcript: "> COMMAND", the reply as redis-cli prints it.
	Examples string
	// Replies says what comes back when: a line or two, or paragraphs and lists in Markdown
	// ("* " and "1. " begin an item).
	Replies string
	// Errors lists what the command refuses, beside a wrong type, wrong arity and
	// arguments that are not numbers: "TEXT: when".
	Errors []string
	// Run executes the command. A container without Run needs a subcommand.
	Run func(*Ctx) error
	// Sub holds a container's subcommands.
	Sub []*Spec

	// Categories are ACL categories beyond those that Group and Flags imply;
	// Without are implied ones the command does not have.
	Categories, Without Category
	// Tips are COMMAND INFO's hints: "nondeterministic_output", ...
	Tips []string
	// History lists what later versions changed.
	History []Change
	// Deprecated is set for commands that have a successor.
	Deprecated *Deprecation
	// SysCmd marks commands that are meant for servers and tools, not for
	// applications; COMMAND DOCS shows it.
	SysCmd bool

	// Keys finds the keys of a command whose grammar cannot say where they
	// stand, or whose access to them depends on other arguments. It appends to
	// dst and returns ErrKeys for arguments it cannot make sense of.
	Keys func(dst []KeyRef, args [][]byte) ([]KeyRef, error)
	// KeyOptions finds the keys in place of Keys and the key specs, as data.
	KeyOptions *KeyOptions
	// KeySpecs replaces the key specs derived from Args.
	KeySpecs []KeySpec
	// Wide reports whether a request may touch keys that it does not name: it
	// then locks every shard, as with AllKeys. nil: none does.
	Wide func(args [][]byte) bool
	// ArityOverride replaces the arity derived from Args; ArityReason says why.
	ArityOverride int
	ArityReason   string
	// Takes tells of a request with more arguments than Redis's command of that
	// name takes whether they make sense here. If not, it has a wrong number of
	// arguments, which is found before it runs or is queued. nil: arity alone counts.
	Takes func(args [][]byte) bool

	// Client says what a client must know beside Flags and Args.
	Client ClientUse
	// FanOut says what a client does with the command in a cluster, where it concerns all
	// masters. The zero value: it goes to the node of its first key.
	FanOut FanOut
	// Stream is the command's part in the replication stream beside that of a Write.
	Stream StreamUse

	derived
}

// Change is an entry of a command's history.
type Change struct{ Since, Text string }

// Deprecation says since when a command is deprecated and what to use instead.
type Deprecation struct{ Since, ReplacedBy string }

// derived has the fields that NewTable derives.
type derived struct {
	arity             int
	first, last, step int
	keySpecs          []KeySpec
	timeout           Timeout
	cats              Category
	id                int
	called            string // what clients call it, "" if they may not: see Table.Rename
	parent            *Spec
	subs              index
}

// Arity returns the number of arguments, the command's name included; it is negative for a minimum.
func (s *Spec) Arity() int { return s.arity }

// ArityOK reports whether a request, name included, has a number of arguments that
// can be valid.
func (s *Spec) ArityOK(args [][]byte) bool {
	n := len(args)
	return n == s.arity || s.arity < 0 && n >= -s.arity && (s.Takes == nil || s.Takes(args))
}

// KeyRange is the legacy description of the keys' positions: the first, the last
// (negative: counted from the end) and the distance between two; 0, 0, 0 if
// there are none at a fixed place.
func (s *Spec) KeyRange() (first, last, step int) { return s.first, s.last, s.step }

// ACL returns the set of the command's ACL categories.
func (s *Spec) ACL() Category { return s.cats }

// ID is the spec's place in its table, 0 <= ID < Table.Len, subcommands
// included: the index for arrays of statistics and for ACL bit sets.
func (s *Spec) ID() int { return s.id }

// Called returns the name by which clients call a top-level command, in lower case; it is empty if
// they may not call it: see Table.Rename.
func (s *Spec) Called() string { return s.called }

// Plain reports whether the command neither has subcommands nor is one.
func (s *Spec) Plain() bool { return s.parent == nil && s.subs.slots == nil }

// Parent returns the container of a subcommand, nil for a top-level command.
func (s *Spec) Parent() *Spec { return s.parent }

// Has reports whether all of the flags are set.
func (s *Spec) Has(f Flags) bool { return s.Flags&f == f }

// FlagsOf returns the flags of a request, which has all of Flags but those of Lacks.
func (s *Spec) FlagsOf(args [][]byte) Flags {
	if s.Lacks == nil {
		return s.Flags
	}
	return s.Flags &^ s.Lacks(args)
}

// OnlyWith returns a Spec.Lacks: a request has the flags f only with one of some words, in any case, among its arguments from a position
// on.
func OnlyWith(f Flags, from int, words ...string) func(args [][]byte) Flags {
	return func(args [][]byte) Flags {
		if hasWord(args, from, words) {
			return 0
		}
		return f
	}
}

// NotWith returns a Spec.Lacks: a request with such a word lacks the flags f.
func NotWith(f Flags, from int, words ...string) func(args [][]byte) Flags {
	return func(args [][]byte) Flags {
		if hasWord(args, from, words) {
			return f
		}
		return 0
	}
}

func hasWord(args [][]byte, from int, words []string) bool {
	return slices.ContainsFunc(args[min(from, len(args)):], func(a []byte) bool {
		return slices.ContainsFunc(words, func(w string) bool { return EqualFold(a, w) })
	})
}

// ShortName returns a subcommand's name without its container's, else Name.
func (s *Spec) ShortName() string {
	if i := strings.IndexByte(s.Name, '|'); i >= 0 {
		return s.Name[i+1:]
	}
	return s.Name
}

// words returns the number of arguments that the name takes: 2 for a subcommand.
func (s *Spec) words() int { return 1 + strings.Count(s.Name, "|") }

// Flags say how dispatch treats a command.
type Flags uint64

// The first block has Redis's names in COMMAND INFO, which shows all of it but
// MayReplicate; the second is our own and is not shown there.
const (
	Write           Flags = 1 << iota // may change data
	ReadOnly                          // reads keys and changes nothing
	DenyOOM                           // refused when memory is full
	Admin                             // administration: @admin and @dangerous
	PubSub                            // publish/subscribe
	NoScript                          // not from scripts
	Blocking                          // may park the client
	Loading                           // allowed while the dataset is loading
	Stale                             // allowed on a replica that lost its master
	SkipMonitor                       // not shown to MONITOR
	SkipSlowlog                       // not logged by SLOWLOG
	Asking                            // follows ASKING
	Fast                              // O(1) or O(log N)
	NoAuth                            // allowed before AUTH
	MayReplicate                      // may produce effects without Write
	NoMandatoryKeys                   // keys are optional
	NoAsyncLoading                    // not while a replica loads beside old data
	NoMulti                           // not inside MULTI
	MovableKeys                       // positions do not follow from first/last/step; derived
	AllowBusy                         // allowed while a script overruns

	AllKeys   // locks every shard
	Slow      // may run long: runs in the background
	NoQueue   // inside MULTI it runs at once: EXEC, DISCARD, WATCH, RESET
	Protected // refused unless enabled in the configuration
	SelfLock  // locks by itself; inside MULTI it needs every shard
	Scripts   // runs a script: on a network loop, on its coroutine
	Keeps     // may keep its arguments
	Timed     // what it does depends on the instant: effects end in NOW and us
	Sliced    // locks its keys' shards by itself, some at a time, where it has more than session.ManyArgs
	OfServer  // tells of no data, although it locks shards: its reply waits for no sync and no member of a group
	RunsQueue // runs what MULTI has queued: EXEC
	Inert     // changes nothing, although it is not ReadOnly: a read-only console runs it
	Reveals   // its reply or effect depends on what a value is, not only on its length: not where the console hides values
	Blind     // its reply and effect depend on the lengths of values at most. A command on keys says one of the two (checkBlind)
	Quotes    // its reply has arguments of other requests, or the text of scripts: hidden as values are
	// InSubscription lets a RESP2 client send the command while it is subscribed.
	InSubscription

	endFlags
)

var flagNames = [...]string{"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking",
	"loading", "stale", "skip_monitor", "skip_slowlog", "asking", "fast", "no_auth", "may_replicate",
	"no_mandatory_keys", "no_async_loading", "no_multi", "movablekeys", "allow_busy",
	"all_keys", "slow", "no_queue", "protected", "self_lock", "scripts", "keeps", "timed", "sliced", "of_server",
	"runs_queue", "inert", "reveals", "blind", "quotes", "in_subscription"}

// Names lists the flags as COMMAND INFO shows them.
func (f Flags) Names() []string { return bitNames(uint64(f&(AllKeys-1)&^MayReplicate), flagNames[:]) }

// String lists all flags, our own included.
func (f Flags) String() string { return strings.Join(bitNames(uint64(f), flagNames[:]), " ") }

// Group is a heading of the documentation, spelled as in COMMAND DOCS.
type Group string

// Redis's groups, then our own.
const (
	GroupGeneric      Group = "generic"
	GroupString       Group = "string"
	GroupList         Group = "list"
	GroupSet          Group = "set"
	GroupSortedSet    Group = "sorted-set"
	GroupHash         Group = "hash"
	GroupPubSub       Group = "pubsub"
	GroupTransactions Group = "transactions"
	GroupConnection   Group = "connection"
	GroupServer       Group = "server"
	GroupScripting    Group = "scripting"
	GroupHyperLogLog  Group = "hyperloglog"
	GroupCluster      Group = "cluster"
	GroupGeo          Group = "geo"
	GroupStream       Group = "stream"
	GroupBitmap       Group = "bitmap"

	GroupBloom     Group = "bloom"
	GroupExpiry    Group = "expiry"
	GroupLimiter   Group = "limiter"
	GroupLock      Group = "lock"
	GroupSemaphore Group = "semaphore"
	GroupQueue     Group = "queue"
)

// Groups lists all groups in the order of the documentation's index.
var Groups = [...]Group{GroupString, GroupHash, GroupList, GroupSet, GroupSortedSet, GroupStream, GroupBitmap,
	GroupHyperLogLog, GroupGeo, GroupBloom, GroupExpiry, GroupLimiter, GroupLock, GroupSemaphore, GroupQueue,
	GroupGeneric, GroupTransactions, GroupScripting, GroupPubSub, GroupConnection, GroupServer, GroupCluster}

// Category is a set of ACL categories.
type Category uint64

// In the order COMMAND INFO and ACL CAT show them; the last block is our own.
const (
	CatKeyspace Category = 1 << iota
	CatRead
	CatWrite
	CatSet
	CatSortedSet
	CatList
	CatHash
	CatString
	CatBitmap
	CatHyperLogLog
	CatGeo
	CatStream
	CatPubSub
	CatAdmin
	CatFast
	CatSlow
	CatBlocking
	CatDangerous
	CatConnection
	CatTransaction
	CatScripting

	CatBloom
	CatExpiry
	CatLimiter
	CatLock
	CatQueue

	endCats
)

var catNames = [...]string{"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
	"hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection",
	"transaction", "scripting", "bloom", "expiry", "limiter", "lock", "queue"}

// Names lists the categories without the "@" that COMMAND INFO puts before them.
func (c Category) Names() []string { return bitNames(uint64(c), catNames[:]) }

// CategoryNames lists every category, in the order of ACL CAT.
func CategoryNames() []string { return catNames[:] }

// CategoryByName finds a category by its name without "@", in any case.
func CategoryByName(name string) (Category, bool) {
	for i, n := range catNames {
		if strings.EqualFold(n, name) {
			return 1 << i, true
		}
	}
	return 0, false
}

var groupCats = map[Group]Category{
	GroupGeneric: CatKeyspace, GroupString: CatString, GroupList: CatList, GroupSet: CatSet,
	GroupSortedSet: CatSortedSet, GroupHash: CatHash, GroupTransactions: CatTransaction,
	GroupConnection: CatConnection, GroupScripting: CatScripting, GroupHyperLogLog: CatHyperLogLog,
	GroupGeo: CatGeo, GroupStream: CatStream, GroupBitmap: CatBitmap,
	GroupBloom: CatBloom, GroupExpiry: CatExpiry, GroupLimiter: CatLimiter, GroupLock: CatLock,
	GroupSemaphore: CatLock, GroupQueue: CatQueue,
}

// categories derives the ACL categories as Redis does: the group gives one
// (except to a bare container, which cannot be run), the flags give the rest.
// Reading through a script does not make a command a reader.
func (s *Spec) categories() Category {
	c := s.Categories
	if s.Run != nil {
		c |= groupCats[s.Group]
	}
	c &^= s.Without
	if s.Has(Write) {
		c |= CatWrite
	}
	if s.Has(ReadOnly) && c&CatScripting == 0 {
		c |= CatRead
	}
	if s.Has(Admin) {
		c |= CatAdmin | CatDangerous
	}
	if s.Has(PubSub) {
		c |= CatPubSub
	}
	if s.Has(Blocking) {
		c |= CatBlocking
	}
	if s.Has(Fast) {
		return c | CatFast
	}
	return c | CatSlow
}

// bitNames gives the names of the bits set in v, lowest first.
func bitNames(v uint64, names []string) []string {
	out := make([]string, 0, bits.OnesCount64(v))
	for ; v != 0; v &= v - 1 {
		out = append(out, names[bits.TrailingZeros64(v)])
	}
	return out
}

// A flag or category without a name, or a name too many, does not compile.
var (
	_ = [1]struct{}{}[1<<len(flagNames)-int(endFlags)]
	_ = [1]struct{}{}[1<<len(catNames)-int(endCats)]
)
