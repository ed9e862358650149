package command

import "github.com/ebbdb/ebb/internal/numeral"

// Match checks a request, name included, against the command's grammar: nil, or
// the error for the place up to which the request made sense. The grammar is
// what COMMAND DOCS tells a client, so a command may accept more than Match does
// (an exclusive bound "(1" where the grammar says double) and may refuse what
// Match accepts (options that exclude each other). It backtracks; the cost is
// O(arguments) for commands whose options begin with tokens, which is all of
// them. It allocates.
func (s *Spec) Match(args [][]byte) error {
	if !s.ArityOK(args) {
		return WrongArity(s)
	}
	m := matcher{in: args, why: ErrSyntax}
	end := func(pos, _ int) bool {
		if pos < len(args) {
			m.miss(pos, ErrSyntax)
		}
		return pos == len(args)
	}
	if m.seq(s.Args, s.words(), -1, end) {
		return nil
	}
	return m.why
}

// matcher tries a grammar against a request. Each method matches one construct
// at pos and calls its last argument with the position behind it; false sends
// the search back. count is the value of the last Count not yet used up, or -1.
type matcher struct {
	in  [][]byte
	far int   // the farthest place that did not match
	why error // the fault at that place
}

type then func(pos, count int) bool

func (m *matcher) miss(pos int, why error) bool {
	if pos >= m.far {
		m.far, m.why = pos, why
	}
	return false
}

func (m *matcher) seq(args []Arg, pos, count int, next then) bool {
	if len(args) == 0 {
		return next(pos, count)
	}
	if n := optionRun(args); n > 0 {
		return m.options(args[:n], 0, pos, count, func(pos, count int) bool {
			return m.seq(args[n:], pos, count, next)
		})
	}
	rest := func(pos, count int) bool { return m.seq(args[1:], pos, count, next) }
	a := &args[0]
	if m.repeated(a, pos, count, rest) {
		return true
	}
	return a.Optional && (count < 0 || !a.Multiple) && rest(pos, count)
}

// optionRun is the number of optional arguments at the start that begin with a
// token: those that may come in any order. At most 64 are taken together.
func optionRun(args []Arg) int {
	n := 0
	for n < len(args) && n < 64 && args[n].Optional && args[n].beginsWithToken() {
		n++
	}
	return n
}

func (a *Arg) beginsWithToken() bool {
	switch {
	case a.Token != "":
		return true
	case a.Kind == KindBlock:
		return a.Args[0].beginsWithToken() && !a.Args[0].Optional
	case a.Kind == KindOneOf:
		for i := range a.Args {
			if !a.Args[i].beginsWithToken() {
				return false
			}
		}
		return true
	}
	return false
}

// options matches a run of options in any order; used has a bit for each that
// came already.
func (m *matcher) options(run []Arg, used uint64, pos, count int, next then) bool {
	for i := range run {
		if used&(1<<i) != 0 {
			continue
		}
		now := used
		if !run[i].MultipleToken {
			now |= 1 << i
		}
		if m.repeated(&run[i], pos, count, func(pos, count int) bool {
			return m.options(run, now, pos, count, next)
		}) {
			return true
		}
	}
	return next(pos, count)
}

// repeated matches an argument once, or as often as it may come: exactly count
// times if there is a count.
func (m *matcher) repeated(a *Arg, pos, count int, next then) bool {
	if !a.Multiple {
		return m.token(a, pos, func(pos int) bool { return m.item(a, pos, count, next) })
	}
	if count == 0 {
		return a.Optional && next(pos, -1) || m.miss(pos, ErrSyntax)
	}
	if a.MultipleToken {
		return m.more(a, pos, count, true, next)
	}
	return m.token(a, pos, func(pos int) bool { return m.more(a, pos, count, false, next) })
}

// more matches at least one occurrence, the longest run first.
func (m *matcher) more(a *Arg, pos, count int, tokens bool, next then) bool {
	one := func(pos int, next then) bool { return m.item(a, pos, -1, next) }
	if tokens {
		one = func(pos int, next then) bool {
			return m.token(a, pos, func(pos int) bool { return m.item(a, pos, -1, next) })
		}
	}
	var again func(done, pos int) bool
	again = func(done, pos int) bool {
		if count > 0 && done == count {
			return next(pos, -1)
		}
		if pos < len(m.in) && one(pos, func(after, _ int) bool { return after > pos && again(done+1, after) }) {
			return true
		}
		return done > 0 && count < 0 && next(pos, -1)
	}
	return again(0, pos)
}

// token matches the word before an argument, if there is one.
func (m *matcher) token(a *Arg, pos int, next func(pos int) bool) bool {
	if a.Token == "" || a.Kind == KindToken {
		return next(pos)
	}
	if pos >= len(m.in) || !EqualFold(m.in[pos], a.Token) {
		return m.miss(pos, ErrSyntax)
	}
	return next(pos + 1)
}

// item matches one occurrence of an argument without its token.
func (m *matcher) item(a *Arg, pos, count int, next then) bool {
	switch a.Kind {
	case KindBlock:
		return m.seq(a.Args, pos, count, next)
	case KindOneOf:
		for i := range a.Args {
			if m.repeated(&a.Args[i], pos, count, next) {
				return true
			}
		}
		return false
	}
	if pos >= len(m.in) {
		return m.miss(pos, ErrSyntax)
	}
	word := m.in[pos]
	switch a.Kind {
	case KindToken:
		if !EqualFold(word, a.word()) {
			return m.miss(pos, ErrSyntax)
		}
	case KindInteger, KindUnixTime:
		n, ok := numeral.ParseInt(word)
		if !ok {
			return m.miss(pos, ErrNotInteger)
		}
		if a.Counts {
			if n < 0 || n > int64(len(m.in)) {
				return m.miss(pos, ErrSyntax)
			}
			count = int(n)
		}
	case KindDouble:
		if _, ok := numeral.ParseDouble(word); !ok {
			return m.miss(pos, ErrNotFloat)
		}
	}
	return next(pos+1, count)
}
