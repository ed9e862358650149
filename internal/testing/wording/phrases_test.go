package wording_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// phrase matches a phrase that reads as a translation.
type phrase struct {
	part string // what each match has, in lower case: to look for it is much faster
	re   *regexp.Regexp
	use  string // the words to use
	// ceilings are the matches that an area still has, at most: they may only sink. An area without a number has none.
	ceilings map[string]int
}

var phrases = []phrase{
	{"more", regexp.MustCompile(`(?i)\bany ?more\b`), "no longer", nil},
	{"right", regexp.MustCompile(`;[^;.]{0,80}\b(?:is|are) right\b`), "it must be ...", nil},
	{"must want", regexp.MustCompile(`(?i)\bmust want\b`), "it must be at least ...", nil},
	{"not ", regexp.MustCompile(`(?i)\b(?:did|does|do) not (?:get there|turn)\b`), "does not respond, did not catch up", nil},
	{"turn comes", regexp.MustCompile(`\bturn comes too\b`), "too late", nil},
	{"for how", regexp.MustCompile(`(?i)\bfor how (?:many|much|long) (?:ms|us|milli|micro|seconds|minutes|calls|times)`),
		"the number of ...", nil},
	{"so ", regexp.MustCompile(`(?i)\bso (?:many|much|long|often)\b`), "that number, at most N, longer; \"so many that ...\" is allowed", nil},
	{"no", regexp.MustCompile(`(?i)\b(?:is|are)\s+no\s+[a-z]+,?\s+but\b`), "is not a ... but", nil},
	{"also ", regexp.MustCompile(`(?i)\balso (?:seconds|minutes|hours|days|years) later\b`), "even hours later", nil},
	{"at one time", regexp.MustCompile(`(?i)\bat one time\b`), "at the same time", nil},
	{" from ", regexp.MustCompile(`: (?:it is|they are) from\b`), "it must be from ... to ...", nil},
	{" by", regexp.MustCompile(`(?i)\b(?:go|goes|going|went|gone|come|comes|coming|came) by\b`), "follows, passes, uses, arrives in", nil},
	{"no", regexp.MustCompile("(?i)\\w+[^\\w.;:?!]+(?:is|are)\\s+no\\s+`?\\w+"), "is not a ...; does not count as ...",
		map[string]int{"console": 2, "docs/design": 1}},
	{"also", regexp.MustCompile(`, also\s+(?:if|when|while|without)\b`), "even if ...", nil},
	{"another", regexp.MustCompile("(?i)\\banother\\s+(?:[\\w`-]+\\s+){0,3}than\\b"), "a ... other than, different from", nil},
	{"anew", regexp.MustCompile(`(?i)\banew\b`), "again, from the start", map[string]int{"console": 3}},
	{"; the", regexp.MustCompile(`;\s+The\b`), "; the", nil},
	{"answers", regexp.MustCompile(`\bAnswers\s+(?:how|whether)\b`), "Returns a function that ..., Returns whether ...", nil},
	{"what", whatAsNoun, "name the thing: due keys, the rest; \"says what is wrong\" is a question, and allowed",
		map[string]int{
			"bench": 4, "cmd": 1, "console": 6, "docs": 1, "docs/design": 7, "docs/guides": 4, "docs/toolkit": 1,
			"examples": 6, "internal": 153,
		}},
	{"", regexp.MustCompile(`\A\w+ (?:is|are) (?:what|how|when|whom|where)\b`), "is the number of ..., returns ..., has ...",
		map[string]int{"console": 1, "internal": 1}},
}

// allowedPhrase matches what is good English although a phrase matches it: there is no, is no longer, is no more than.
var allowedPhrase = regexp.MustCompile(`(?i)^t?here\W|\bno\s+(?:longer|more|later|less|earlier|greater|need|room|such)$|^` + asks)

// whatAsNoun matches "what is", "what has" and their like, which hide a thing: due keys, the time that is left. Behind a verb that takes
// a question, and in a question, they are good English.
var whatAsNoun = regexp.MustCompile(`(?i)\b(?:` + asks + `)?what\s+(?:is|are|has|have|was|were|had)\b`)

// asks matches a verb that takes a question, and the space behind it.
const asks = `(?:(?:ask|check|decide|determine|examine|explain|know|print|report|see|show|tell|wonder)(?:s|ed|n)?|` +
	`names|says?|said|knew|told|saw)\s+`

// consequence matches what makes a phrase with "so" a comparison or a consequence, which is good English.
var consequence = regexp.MustCompile(`(?i)\bso (?:many|much|long|often)\b.*\b(?:that|as)\b`)

// findPhrases calls visit with the phrases of a text that begins at a line of a file.
func findPhrases(file string, line int, text string, visit func(p *phrase, text string)) {
	lower := strings.ToLower(text)
	for i := range phrases {
		p := &phrases[i]
		if !strings.Contains(lower, p.part) {
			continue
		}
		for _, at := range p.re.FindAllStringIndex(text, -1) {
			s := sentence(text, at)
			isQuestion := p.re == whatAsNoun && (strings.HasSuffix(s, "?") || strings.HasPrefix(s, "#"))
			if !isQuestion && !allowedPhrase.MatchString(text[at[0]:at[1]]) && !consequence.MatchString(s) {
				visit(p, fmt.Sprintf("%s:%d: %s (%s)", file, line+strings.Count(text[:at[0]], "\n"), s, p.use))
			}
		}
	}
}

func TestTextsHaveNoTranslatedPhrases(t *testing.T) {
	type place struct {
		p    *phrase
		area string
	}
	found := map[place][]string{}
	walk(t, func(name string, data []byte) {
		var texts []finding
		switch {
		case strings.HasPrefix(name, "internal/testing/wording/"):
		case strings.HasSuffix(name, ".md"):
			texts = []finding{{line: 1, text: string(data)}}
		case strings.HasSuffix(name, ".go"):
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(comments(fset, f), literals(fset, f)...)
		default:
			words, strs := script(string(data))
			texts = append(words, strs...)
		}
		for _, text := range texts {
			findPhrases(name, text.line, text.text, func(p *phrase, s string) {
				at := place{p, area(name)}
				found[at] = append(found[at], s)
			})
		}
	})
	for at, all := range found {
		switch max := at.p.ceilings[at.area]; {
		case len(all) > max:
			t.Errorf("%s has %d phrases that match %v; its ceiling is %d:\n%s", at.area, len(all), at.p.re, max, strings.Join(all, "\n"))
		case len(all) < max:
			t.Logf("%s: lower its ceiling of %v to %d", at.area, at.p.re, len(all))
		}
	}
}

// subjectless matches the beginning of an error without a subject: the reader of a log does not know what "it" is.
var subjectless = regexp.MustCompile(`\b(?:errors\.New|fmt\.Errorf)\("(?:it|they) `)

func TestErrorsNameTheirSubject(t *testing.T) {
	var found []string
	walk(t, func(name string, data []byte) {
		for i, line := range strings.Split(string(data), "\n") {
			if subjectless.MatchString(line) {
				found = append(found, fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(line)))
			}
		}
	})
	if len(found) > 0 {
		t.Errorf("%d errors begin with a pronoun, not with their subject:\n%s", len(found), strings.Join(found, "\n"))
	}
}

func TestPhrasesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"It does not hold the lock\nany more.":              1,
		"the state is 3; All and Ready are right":           1,
		"The checksums are right.":                          0,
		"It waits for so many ms.":                          1,
		"There are so many keys that a scan takes long.":    0,
		"It may go on so long as it renews its lease.":      0,
		"PAUSED must be yes, no, or for how many ms":        1,
		"An expression for every hour goes by elapsed time": 1,
		"The Driver is no `TrackingDriver`.":                1,
		"There are no keys, and it is no longer a replica.": 0,
		"It removes the key, also while it is held.":        1,
		"After success, and also after an error.":           0,
		"It leads to another server\n// than FROM.":         0,
		"It leads to another server than FROM.":             1,
		"The screen begins anew.":                           1,
		"It is there; The rest follows.":                    1,
		"It stops. Answers how to\ngo on.":                  1,
		"Status is what a node tells of itself.":            1,
		"A Status is what a node tells of itself.":          0,
		"It removes what is due, and what\nhas expired.":    2,
		"It says what is wrong. What is due? Nothing.":      0,
	} {
		got := 0
		if findPhrases("x", 1, text, func(*phrase, string) { got++ }); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
