package command

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/numeral"
)

// Pools are the values that Generate draws from. A nil pool has a few defaults;
// small pools make commands meet on the same keys and members.
type Pools struct {
	Keys     []string
	Strings  []string
	Patterns []string
	Ints     []int64
	Doubles  []float64
	Times    []int64             // absolute times
	Named    map[string][]string // by the name of an argument; goes before the others
	Most     int                 // the most repetitions; 0 means 3
}

var defaultPools = Pools{
	Keys:     []string{"k1", "k2", "k3", "{t}1", "{t}2"},
	Strings:  []string{"a", "b", "c", "", "10", "3.5", "a longer value, with blanks"},
	Patterns: []string{"*", "k*", "[a-c]", "?", "nothing"},
	Ints:     []int64{0, 1, 2, 3, 10, 100, -1, -2, 1000},
	Doubles:  []float64{0, 1, -1, 2.5, 10, 1e6},
	Times:    []int64{1, 1 << 31, 1 << 40},
}

// Pick draws one of specs, and a source of numbers for its request. It takes one number from rng. A further command changes no
// draw but those that it gets itself: each command has a weight for each number, and the greatest weight wins.
func Pick(rng *rand.Rand, specs []*Spec) (*Spec, *rand.Rand) {
	drawn := rng.Uint64()
	var best *Spec
	var heaviest uint64
	for _, s := range specs {
		if w := mixed(drawn ^ nameHash(s.Name)); best == nil || w > heaviest {
			best, heaviest = s, w
		}
	}
	return best, rand.New(rand.NewPCG(drawn, nameHash(best.Name)))
}

// Source returns a source of numbers for the requests of one command, which other commands do not change.
func (s *Spec) Source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, nameHash(s.Name))) }

// nameHash is FNV-1a.
func nameHash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// mixed is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Generate makes a random request, name included, that the command's grammar
// matches. The pools may be nil.
func Generate(rng *rand.Rand, s *Spec, pools *Pools) [][]byte {
	if pools == nil {
		pools = &defaultPools
	}
	g := generator{rng: rng, pools: pools}
	g.out = append(g.out, strings.Split(s.Name, "|")...)
	g.seq(s.Args)
	args := make([][]byte, len(g.out))
	for i, w := range g.out {
		args[i] = []byte(w)
	}
	return args
}

// GenerateInvalid makes a random request that the grammar does not match, by
// damaging one that it does. ok is false for a command, like ECHO's kin with one
// free argument list, that a thousand attempts could not make invalid.
func GenerateInvalid(rng *rand.Rand, s *Spec, pools *Pools) (args [][]byte, ok bool) {
	for range 1000 {
		args = Damage(rng, Generate(rng, s, pools), s.words())
		if s.Match(args) != nil {
			return args, true
		}
	}
	return nil, false
}

// Damage changes one thing in a request behind its name of the given number of
// words: an argument is dropped, doubled, swapped with its neighbour, or replaced.
// The result may still be valid.
func Damage(rng *rand.Rand, args [][]byte, words int) [][]byte {
	out := append([][]byte(nil), args...)
	if len(out) <= words {
		return append(out, []byte("surplus"))
	}
	i := words + rng.IntN(len(out)-words)
	switch rng.IntN(5) {
	case 0:
		return append(out[:i], out[i+1:]...)
	case 1:
		return append(out[:i:i], append([][]byte{out[i]}, out[i:]...)...)
	case 2:
		if i+1 < len(out) {
			out[i], out[i+1] = out[i+1], out[i]
			return out
		}
	case 3:
		return append(out, []byte("surplus"))
	}
	junk := []string{"junk", "", "-1", "0", "1.5", "nan", "9223372036854775808", "\x00\xff\r\n"}
	out[i] = []byte(junk[rng.IntN(len(junk))])
	return out
}

// generator writes a random sentence of a grammar. count is the value of the
// last Count not yet used up.
type generator struct {
	rng   *rand.Rand
	pools *Pools
	out   []string
	count int
}

func (g *generator) seq(args []Arg) {
	for len(args) > 0 {
		n := max(optionRun(args), 1)
		for _, i := range g.rng.Perm(n) {
			a := &args[i]
			if !a.Optional || g.count > 0 && a.Multiple || g.rng.IntN(3) == 0 {
				g.arg(a)
			}
		}
		args = args[n:]
	}
}

func (g *generator) arg(a *Arg) {
	times := 1
	if a.Multiple {
		times = g.times()
	}
	for i := range times {
		if a.Token != "" && a.Kind != KindToken && (i == 0 || a.MultipleToken) {
			g.out = append(g.out, a.Token)
		}
		g.item(a)
	}
}

// times draws the number of times that a repeated argument comes.
func (g *generator) times() int {
	if n := g.count; n > 0 {
		g.count = 0
		return n
	}
	return 1 + g.rng.IntN(g.limit())
}

func (g *generator) limit() int {
	if g.pools.Most > 0 {
		return g.pools.Most
	}
	return 3
}

func (g *generator) item(a *Arg) {
	if named := g.pools.Named[a.Name]; len(named) > 0 && len(a.Args) == 0 && a.Kind != KindToken && !a.Counts {
		g.out = append(g.out, named[g.rng.IntN(len(named))])
		return
	}
	switch a.Kind {
	case KindBlock:
		g.seq(a.Args)
	case KindOneOf:
		g.arg(&a.Args[g.rng.IntN(len(a.Args))])
	case KindToken:
		g.out = append(g.out, a.word())
	case KindKey:
		g.out = append(g.out, pick(g.rng, g.pools.Keys, defaultPools.Keys))
	case KindPattern:
		g.out = append(g.out, pick(g.rng, g.pools.Patterns, defaultPools.Patterns))
	case KindUnixTime:
		g.int(pick(g.rng, g.pools.Times, defaultPools.Times))
	case KindDouble:
		f := pick(g.rng, g.pools.Doubles, defaultPools.Doubles)
		g.out = append(g.out, string(numeral.AppendDouble(nil, f)))
	case KindInteger:
		if a.Counts {
			g.count = 1 + g.rng.IntN(g.limit())
			g.int(int64(g.count))
			return
		}
		g.int(pick(g.rng, g.pools.Ints, defaultPools.Ints))
	default:
		g.out = append(g.out, pick(g.rng, g.pools.Strings, defaultPools.Strings))
	}
}

func (g *generator) int(n int64) { g.out = append(g.out, strconv.FormatInt(n, 10)) }

func pick[T any](rng *rand.Rand, from, otherwise []T) T {
	if len(from) == 0 {
		from = otherwise
	}
	return from[rng.IntN(len(from))]
}
