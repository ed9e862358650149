package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A chineseTerm is a row of the glossary: English words, and the Chinese ones of which a translation has one.
type chineseTerm struct {
	words   []*regexp.Regexp
	chinese []string
	name    string
}

// chineseTerms reads the glossary of the Chinese pages.
func chineseTerms(t *testing.T) (all []chineseTerm) {
	t.Helper()
	text, err := os.ReadFile(chineseIndex)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| 英文 |")
	note := regexp.MustCompile(`（.*?）`)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(line, "| ") {
			continue
		}
		term := chineseTerm{name: strings.TrimSpace(cells[1])}
		names := strings.Split(term.name, ",")
		last := strings.Fields(names[len(names)-1])
		for _, name := range names { // full, partial resynchronisation: the last word belongs to both
			name = strings.TrimSpace(name)
			if len(last) > 1 && !strings.Contains(name, " ") {
				name += " " + last[len(last)-1]
			}
			term.words = append(term.words, regexp.MustCompile(`(?i)\b`+regexp.QuoteMeta(name)+`(s|es)?\b`))
		}
		for _, c := range regexp.MustCompile(`[、；]`).Split(note.ReplaceAllString(cells[2], ""), -1) {
			term.chinese = append(term.chinese, strings.TrimPrefix(strings.TrimSpace(c), "已")) // 已过期, and 过期 as a verb
		}
		all = append(all, term)
	}
	if len(all) < 40 {
		t.Fatalf("the glossary has %d terms", len(all))
	}
	return all
}

// The console and the pages call a thing by the same word: where an English text of the console has a term of the glossary, the
// Chinese one has the glossary's.
func TestTheChineseConsoleUsesTheTermsOfTheGlossary(t *testing.T) {
	var english, chinese map[string]string
	for name, to := range map[string]*map[string]string{"en": &english, "zh": &chinese} {
		text, err := os.ReadFile("../console/ui/i18n/" + name + ".json")
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	placeholder := regexp.MustCompile(`\{\w+\}`)
	glossary, found := chineseTerms(t), 0
	for key, text := range english {
		text = placeholder.ReplaceAllString(text, "")
	terms:
		for _, term := range glossary {
			if !term.in(text) {
				continue
			}
			found++
			for _, c := range term.chinese {
				if strings.Contains(chinese[key], c) {
					continue terms
				}
			}
			t.Errorf("%s: %q has the term %q, and %q has none of %q", key, text, term.name, chinese[key], term.chinese)
		}
	}
	if found < 150 {
		t.Errorf("only %d terms were found in the console's texts", found)
	}
}

// in reports whether an English text has the term, other than as a word of a command: those are in capitals.
func (c chineseTerm) in(text string) bool {
	for _, word := range c.words {
		for _, found := range word.FindAllString(text, -1) {
			if found != strings.ToUpper(found) || strings.Contains(c.name, found) {
				return true
			}
		}
	}
	return false
}

// One word has one meaning in the glossary, in both languages.
func TestTheChineseGlossaryHasEachTermOnce(t *testing.T) {
	english, chinese := map[string]bool{}, map[string]string{}
	for _, term := range chineseTerms(t) {
		for name := range strings.SplitSeq(term.name, ",") {
			if name = strings.TrimSpace(name); english[name] {
				t.Errorf("%s is there twice", name)
			}
			english[strings.TrimSpace(name)] = true
		}
		for _, c := range term.chinese {
			if other := chinese[c]; other != "" {
				t.Errorf("%s stands for %s and for %s", c, other, term.name)
			}
			chinese[c] = term.name
		}
	}
}
