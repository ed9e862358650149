package transcript

import (
	"os"
	"strings"
)

// Update rewrites the replies in a file to those of cases, which were parsed
// from it and then played with Rules.Record. All other lines stay as they are.
func Update(path string, cases []Case) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	steps := map[int]*Step{}
	for i := range cases {
		for j := range cases[i].Steps {
			s := &cases[i].Steps[j]
			steps[s.Line] = s
		}
	}
	var out []string
	for i, line := range strings.Split(string(text), "\n") {
		s := steps[i+1]
		trimmed := strings.TrimSpace(line)
		switch {
		case s != nil && s.Kind == Wait:
			out = append(out, line)
		case s != nil:
			var b strings.Builder
			s.format(&b)
			out = append(out, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
		case trimmed == "" || strings.HasPrefix(line, "#") && !looksLikeReply(line):
			out = append(out, line)
		}
	}
	return os.WriteFile(path, []byte(strings.Join(out, "\n")), 0o644)
}
