package wording_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// phrases match what reads as a translation, each with the words to use.
var phrases = []struct {
	part string // what each match has, in lower case: to look for it is much faster
	re   *regexp.Regexp
	use  string
}{
	{"more", regexp.MustCompile(`(?i)\bany ?more\b`), "no longer"},
	{"right", regexp.MustCompile(`;[^;.]{0,80}\b(?:is|are) right\b`), "it must be ..."},
	{"must want", regexp.MustCompile(`(?i)\bmust want\b`), "it must be at least ..."},
	{"not ", regexp.MustCompile(`(?i)\b(?:did|does|do) not (?:get there|turn)\b`), "does not respond, did not catch up"},
	{"turn comes", regexp.MustCompile(`\bturn comes too\b`), "too late"},
	{"for how", regexp.MustCompile(`(?i)\bfor how (?:many|much|long) (?:ms|us|milli|micro|seconds|minutes|calls|times)`), "the number of ..."},
	{"so ", regexp.MustCompile(`(?i)\bso (?:many|much|long|often)\b`), "that number, at most N, longer; \"so many that ...\" is allowed"},
	{" no ", regexp.MustCompile(`(?i)\b(?:is|are) no [a-z]+,? but\b`), "is not a ... but"},
	{"also ", regexp.MustCompile(`(?i)\balso (?:seconds|minutes|hours|days|years) later\b`), "even hours later"},
	{"at one time", regexp.MustCompile(`(?i)\bat one time\b`), "at the same time"},
	{" from ", regexp.MustCompile(`: (?:it is|they are) from\b`), "it must be from ... to ..."},
	{" by", regexp.MustCompile(`(?i)\b(?:go|goes|going|went|gone|come|comes|coming|came) by\b`), "follows, passes, uses, arrives in"},
}

// consequence matches what makes a phrase with "so" a comparison or a consequence, which is good English.
var consequence = regexp.MustCompile(`(?i)\bso (?:many|much|long|often)\b.*\b(?:that|as)\b`)

// findPhrases returns the phrases of a text that begins at a line of a file.
func findPhrases(file string, line int, text string) (all []string) {
	lower := strings.ToLower(text)
	for _, p := range phrases {
		if !strings.Contains(lower, p.part) {
			continue
		}
		for _, at := range p.re.FindAllStringIndex(text, -1) {
			s := sentence(text, at)
			if !consequence.MatchString(s) {
				all = append(all, fmt.Sprintf("%s:%d: %s (%s)", file, line+strings.Count(text[:at[0]], "\n"), s, p.use))
			}
		}
	}
	return all
}

func TestTextsHaveNoTranslatedPhrases(t *testing.T) {
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
			for _, phrase := range findPhrases(name, text.line, text.text) {
				t.Error(phrase)
			}
		}
	})
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
	} {
		if got := findPhrases("x", 1, text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
