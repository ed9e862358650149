package console

import (
	"slices"
	"strconv"
	"strings"
)

// clientRow is a connection. Times are in seconds.
type clientRow struct {
	ID     int64  `json:"id"`
	Addr   string `json:"addr"`
	Name   string `json:"name"`
	User   blob   `json:"user"`
	DB     int64  `json:"db"`
	Age    int64  `json:"age"`
	Idle   int64  `json:"idle"`
	Cmd    string `json:"cmd"`
	Flags  string `json:"flags"`
	Mem    int64  `json:"mem"`
	Resp   int64  `json:"resp"`
	Lib    string `json:"lib"`
	LibVer string `json:"libVer"`
}

// clientText is the length of the longest text of a client that a page gets: a client chooses its own name,
// and that of its library.
const clientText = 128

// clientColumns are the columns by which clients are sorted.
var clientColumns = map[string]func(*clientRow) float64{
	"id": func(r *clientRow) float64 { return float64(r.ID) }, "db": func(r *clientRow) float64 { return float64(r.DB) },
	"age": func(r *clientRow) float64 { return float64(r.Age) }, "idle": func(r *clientRow) float64 { return float64(r.Idle) },
	"mem": func(r *clientRow) float64 { return float64(r.Mem) },
}

// getClients answers GET api/clients?find&sort: of the connections that contain a text, the first ones by a
// column.
func getClients(k *call, q *request) (any, error) {
	all, err := k.clients(q)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	return struct {
		*ranked[clientRow]
		Total  int      `json:"total"`
		Denied []string `json:"denied,omitempty"`
	}{clientsBy(all, q.text("find"), q.text("sort")), len(all), k.denied}, nil
}

// clients returns the rows of CLIENT LIST.
func (k *call) clients(q *request) ([]clientRow, error) {
	v, err := k.do(q.ctx, "CLIENT", "LIST")
	if err != nil {
		return []clientRow{}, err
	}
	return parseClients(v.Str), nil
}

// parseClients reads the text of CLIENT LIST.
func parseClients(text string) []clientRow {
	rows, f := []clientRow{}, map[string]string{}
	for line := range strings.Lines(text) {
		clear(f)
		for _, word := range strings.Fields(line) {
			name, value, _ := strings.Cut(word, "=")
			f[name] = value
		}
		row := clientRow{
			ID: number(f, "id"), Addr: f["addr"], Name: f["name"], User: bytesOf(f["user"]), DB: number(f, "db"),
			Age: number(f, "age"), Idle: number(f, "idle"), Cmd: f["cmd"], Flags: f["flags"], Mem: number(f, "tot-mem"),
			Resp: number(f, "resp"), Lib: f["lib-name"], LibVer: f["lib-ver"],
		}
		if row.ID > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// has reports whether a text of a client contains part, in any case.
func (r *clientRow) has(part string) bool {
	texts := []string{r.Addr, r.Name, r.User.s, r.Cmd, r.Lib, strconv.FormatInt(r.ID, 10)}
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), part) })
}

// clientsBy returns, of the clients that contain a text, the first ones by a column. It cuts their texts.
func clientsBy(all []clientRow, find, sort string) *ranked[clientRow] {
	out := &ranked[clientRow]{Rows: []clientRow{}, All: true}
	find = strings.ToLower(find)
	for _, r := range all {
		if find == "" || r.has(find) {
			out.Rows = append(out.Rows, r)
		}
	}
	out.Looked = len(out.Rows)
	text := map[string]func(*clientRow) string{
		"addr": func(r *clientRow) string { return r.Addr }, "name": func(r *clientRow) string { return r.Name },
		"user": func(r *clientRow) string { return r.User.s }, "cmd": func(r *clientRow) string { return r.Cmd },
		"lib": func(r *clientRow) string { return r.Lib },
	}
	name, down := strings.CutPrefix(sort, "-")
	if of := text[name]; of != nil {
		slices.SortStableFunc(out.Rows, func(a, b clientRow) int {
			if down {
				a, b = b, a
			}
			return strings.Compare(of(&a), of(&b))
		})
	}
	out.first(sort, clientColumns)
	for i := range out.Rows {
		r := &out.Rows[i]
		for _, s := range []*string{&r.Name, &r.Lib, &r.LibVer, &r.Cmd} {
			if len(*s) > clientText {
				*s = (*s)[:clientText] + "…"
			}
		}
	}
	return out
}
