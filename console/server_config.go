package console

import (
	"slices"

	"github.com/ebbdb/ebb/internal/config"
)

// configRow is a directive of the configuration.
type configRow struct {
	Name      string   `json:"name"`
	Value     *blob    `json:"value"` // null: a secret
	Default   *blob    `json:"default"`
	Changed   bool     `json:"changed"`
	Secret    bool     `json:"secret,omitempty"`
	Set       bool     `json:"set,omitempty"`     // for a secret: it is not empty
	Given     blob     `json:"given"`             // the place where it was given at start, such as redis.conf:12
	Immutable bool     `json:"immutable"`         // CONFIG SET refuses it
	Protected bool     `json:"protected"`         // CONFIG SET needs enable-protected-configs
	Choices   []string `json:"choices"`           // the valid values; null: others are valid too
	Usage     string   `json:"usage"`             // describes the valid values
	Doc       string   `json:"doc"`               // its meaning and unit
	Ignored   string   `json:"ignored,omitempty"` // the reason why the server does not use it
}

// getConfig answers GET api/config: the directives, those that differ from their defaults first.
func getConfig(k *call, _ *request) (any, error) {
	out := struct {
		File   string      `json:"file"` // "": none was read
		Rows   []configRow `json:"rows"`
		Denied []string    `json:"denied,omitempty"`
	}{Rows: []configRow{}}
	if !k.allowed([][]byte{[]byte("CONFIG"), []byte("GET"), []byte("*")}) {
		out.Denied = k.denied
		return out, nil
	}
	set := k.c.svc.Config
	out.File = set.Path()
	for _, s := range set.Settings() {
		if s.Hidden && !s.Changed() {
			continue // CONFIG GET * does not show it either
		}
		row := configRow{Name: s.Name, Changed: s.Changed(), Secret: s.Sensitive, Given: bytesOf(s.Where), Immutable: s.Immutable, Protected: s.Protected,
			Usage: s.Usage(), Doc: s.Doc, Ignored: s.Unused}
		switch s.Kind {
		case config.Bool:
			row.Choices = []string{"no", "yes"}
		case config.Enum:
			row.Choices = s.Choices
		}
		if row.Set = s.Sensitive && s.Value != ""; !s.Sensitive {
			value, initial := bytesOf(s.Value), bytesOf(s.Initial)
			row.Value, row.Default = &value, &initial
		}
		out.Rows = append(out.Rows, row)
	}
	rank := func(r configRow) int {
		switch {
		case r.Ignored != "":
			return 2
		case r.Changed:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out.Rows, func(a, b configRow) int { return rank(a) - rank(b) })
	return out, nil
}
