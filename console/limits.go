package console

// limitRow is a limiter. Times are in ms.
type limitRow struct {
	K            blob    `json:"k"`
	Algorithm    string  `json:"algorithm"`
	Limit        int64   `json:"limit"`
	Period       int64   `json:"period"`
	Remaining    int64   `json:"remaining"`
	Retry        float64 `json:"retry"`
	Reset        float64 `json:"reset"`
	Reservations int     `json:"reservations"`
	Line         int     `json:"line"`
	Burst        int64   `json:"burst"`
}

// topRow is a limiter that denies requests.
type topRow struct {
	K       blob      `json:"k"`
	Denied  int64     `json:"denied"`
	Allowed int64     `json:"allowed"`
	Since   int64     `json:"since"`
	Error   int64     `json:"error"`
	Info    *limitRow `json:"info"` // null: the limiter no longer exists, or the user may not read it
}

// rate returns the denied requests per minute. The server halves the counts each minute, so that the count of
// a limiter that always denies covers a minute and a half on average.
func (r *topRow) rate(now int64) float64 {
	return float64(r.Denied) / min(1.5, max(1, float64(now-r.Since)/60_000))
}

// top returns the limiters that deny the most requests.
func (k *call) top(q *request) ([]topRow, error) {
	v, err := k.do(q.ctx, "RL.TOP", "COUNT", 50)
	rows := make([]topRow, 0, len(v.Elems))
	if err != nil {
		return rows, err
	}
	for _, e := range v.Elems {
		x := e.Elems
		rows = append(rows, topRow{K: nameOf(x[0]), Denied: x[1].Int, Allowed: x[2].Int, Since: x[3].Int, Error: x[4].Int})
	}
	return rows, nil
}

// limitColumns are the columns by which limiters are sorted.
var limitColumns = map[string]func(*limitRow) float64{
	"left":   func(r *limitRow) float64 { return float64(r.Remaining) / float64(max(1, r.Limit)) },
	"period": func(r *limitRow) float64 { return float64(r.Period) }, "retry": func(r *limitRow) float64 { return r.Retry },
	"reset": func(r *limitRow) float64 { return r.Reset }, "held": func(r *limitRow) float64 { return float64(r.Reservations) },
	"line": func(r *limitRow) float64 { return float64(r.Line) },
}

// getLimits answers GET api/limits?db&match.
func getLimits(k *call, q *request) (any, error) {
	return k.limits(q, q.text("match"), q.text("sort"), k.c.now())
}

// limits returns limiters, and those that deny the most requests. Like the lists of locks and queues, the
// answer begins with the time: see listNow.
func (k *call) limits(q *request, match, sort string, now int64) (any, error) {
	keys, more, err := k.keysOf(q, "limiter", match)
	if err != nil {
		return nil, err
	}
	out := struct {
		Now int64    `json:"now"`
		Top []topRow `json:"top"`
		*ranked[limitRow]
		Denied []string `json:"denied,omitempty"`
	}{now, []topRow{}, rank[limitRow](more), nil}
	if top, err := k.top(q); err == nil {
		for i := range top {
			if r := &top[i]; !r.K.cut {
				r.Info = k.limitRow(q, r.K.s)
			}
		}
		out.Top = top
	}
	out.add(k, keys, func(key string) *limitRow { return k.limitRow(q, key) })
	out.first(sort, limitColumns)
	out.Denied = k.denied
	return out, nil
}

// limitRow reads a limiter; it returns nil after an error, and if there is no such limiter.
func (k *call) limitRow(q *request, key string) *limitRow {
	v, err := k.do(q.ctx, "RL.INFO", key)
	if err != nil || v.IsNull() {
		return nil
	}
	return &limitRow{bytesOf(key), member(v, "algo").Str, member(v, "limit").Int, member(v, "period").Int, member(v, "remaining").Int,
		us(member(v, "retry-after-us").Int), us(member(v, "reset-after-us").Int), len(member(v, "reservations").Elems),
		int(member(v, "waiting").Int), member(v, "burst").Int}
}

// us converts us to ms.
func us(n int64) float64 { return float64(n) / 1000 }
