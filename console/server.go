package console

import (
	"strconv"
	"strings"
)

// getServer answers GET api/server: INFO everything, by section.
func getServer(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "INFO", "everything")
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	info, section := map[string]map[string]string{}, ""
	for line := range strings.Lines(v.Str) {
		line = strings.TrimRight(line, "\r\n")
		if name, ok := strings.CutPrefix(line, "# "); ok {
			section = strings.ToLower(name)
			info[section] = map[string]string{}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok && section != "" {
			info[section][name] = value
		}
	}
	return struct {
		Info   map[string]map[string]string `json:"info"`
		Now    int64                        `json:"now"`
		Denied []string                     `json:"denied,omitempty"`
	}{info, k.c.now(), k.denied}, nil
}

// info returns the fields of some sections of INFO.
func (k *call) info(q *request, sections ...string) (map[string]string, error) {
	args := []any{"INFO"}
	for _, s := range sections {
		args = append(args, s)
	}
	v, err := k.do(q.ctx, args...)
	if err != nil {
		return nil, err
	}
	return fieldsOf(v), nil
}

// number returns a field of INFO, 0 if it is missing.
func number(fields map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64) // 0 if the field is not a number
	return n
}
