package console

import (
	"net/http"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/resp"
)

// getForecast answers GET api/forecast?db&match&span.
func getForecast(k *call, q *request) (any, error) {
	span, err := q.word("span", "minute", "hour", "day", "month")
	if err != nil {
		return nil, err
	}
	if match := q.text("match"); match != "" {
		return k.forecastOf(q, span, match)
	}
	if !k.allowed([][]byte{[]byte("EXPIRY"), []byte("SURVEY")}) { // the survey contains the same facts
		return nil, errNotAllowed
	}
	began := k.c.clock.Micros()
	size, err := k.do(q.ctx, "DBSIZE")
	if err != nil && err != errNotAllowed {
		return nil, err // for instance LOADING
	}
	s := spans[span]
	survey := k.c.svc.DB.TrySurveyDue(s.grid)
	if survey == nil {
		return nil, &failure{status: http.StatusServiceUnavailable, Code: "BUSY",
			Text: "BUSY a transaction holds the data, such as a script that runs for long"}
	}
	f := &forecast{At: survey.At, Span: span, Buckets: make([]bucket, s.buckets)}
	for i := range f.Buckets {
		b := &f.Buckets[i]
		b.From, b.To = f.At+int64(i)*s.step, f.At+int64(i+1)*s.step
		b.Keys, b.Containers = s.of(&survey.Keys)[i], s.of(&survey.Containers)[i]
		f.Later -= b.Keys + b.Containers
	}
	for _, c := range []*engine.DueCounts{&survey.Keys, &survey.Containers} {
		f.Later += c.Later
		for _, n := range c.Days {
			f.Later += n
		}
	}
	if err == nil {
		f.Storm = stormIn(f.Buckets, size.Int)
	}
	f.Took = (k.c.clock.Micros() - began) / 1000
	return f, nil
}

// forecastOf returns the forecast of the keys that match a pattern.
func (k *call) forecastOf(q *request, span, match string) (*forecast, error) {
	s, c := spans[span], k.c
	args := []any{"EXPIRY", "FORECAST", "MATCH", match, "HORIZON", s.step * int64(s.buckets), "BUCKETS", s.buckets}
	argv, err := words(args)
	if err != nil {
		return nil, err
	}
	if !k.allowed(argv) { // the kept answers may contain rows of another user
		return nil, errNotAllowed
	}
	name := k.v.id.Name() + "\x00" + q.text("db") + "\x00" + span + "\x00" + match
	c.forecasts.mu.Lock()
	defer c.forecasts.mu.Unlock()
	now := c.now()
	if f := c.forecasts.last[name]; f != nil && (now-f.At < forecastKept || now < c.forecasts.rest) {
		return f, nil
	}
	if now < c.forecasts.rest {
		return nil, &failure{status: http.StatusServiceUnavailable, Code: "RESTING", retry: int((c.forecasts.rest-now)/1000) + 1,
			Text: "the console has just walked over all keys for a pattern, and rests: it asks again by itself"}
	}
	v, err := k.do(q.ctx, args...)
	if err != nil {
		return nil, err
	}
	f := &forecast{At: now, Span: span, Exact: true, Took: c.now() - now}
	c.forecasts.rest = c.now() + forecastRest*f.Took
	for _, e := range v.Elems {
		f.Buckets = append(f.Buckets, bucket{From: now + e.Elems[0].Int, To: now + e.Elems[1].Int, Keys: e.Elems[2].Int})
	}
	if len(c.forecasts.last) >= 64 || c.forecasts.last == nil {
		c.forecasts.last = map[string]*forecast{}
	}
	c.forecasts.last[name] = f
	return f, nil
}

// lagRow is the lateness of the expirations of a level, in us.
type lagRow struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	P50   int64  `json:"p50"`
	P99   int64  `json:"p99"`
	P999  int64  `json:"p999"`
	Max   int64  `json:"max"`
}

// getLag answers GET api/lag?db: the lateness of expirations, and what the topic expired reports for the
// database.
func getLag(k *call, q *request) (any, error) {
	v, err := k.do(q.ctx, "EXPIRY", "LAG")
	if err != nil {
		return nil, err
	}
	out := struct {
		Rows    []lagRow `json:"rows"`
		Backlog int64    `json:"backlog"`
		Rules   int      `json:"rules"`  // the number of rules that record expirations in streams
		Enable  string   `json:"enable"` // the value of notify-keyspace-events that would report each key; "" if it does already
		Need    string   `json:"need"`   // the ACL rule that the user lacks for these events
	}{Rows: []lagRow{}, Enable: k.c.eventsSetting(), Need: k.eventsRule(k.s.db)}
	for name, x := range v.Pairs {
		if name.Str == "backlog" {
			out.Backlog = x.Int
			continue
		}
		out.Rows = append(out.Rows, lagRow{name.Str, member(x, "count").Int, member(x, "p50-us").Int, member(x, "p99-us").Int,
			member(x, "p99.9-us").Int, member(x, "max-us").Int})
	}
	if rules, err := k.ruleRows(q); err == nil {
		for _, r := range rules {
			if !r.Queue {
				out.Rules++
			}
		}
	}
	return out, nil
}

// soonRow is one deadline. Item is null for a key.
type soonRow struct {
	At    int64  `json:"at"`
	Level string `json:"level"`
	K     blob   `json:"k"`
	Item  *blob  `json:"item"`
}

// getSoon answers GET api/soon?db&count&match&level&within.
func getSoon(k *call, q *request) (any, error) {
	count, err := q.number("count", 20, 1, 1000)
	if err != nil {
		return nil, err
	}
	within, err := q.number("within", 0, 0, 3_153_600_000_000)
	if err != nil {
		return nil, err
	}
	args := []any{"EXPIRY", "SOON", "COUNT", count}
	if within > 0 {
		args = append(args, "WITHIN", within)
	}
	if m := q.text("match"); m != "" {
		args = append(args, "MATCH", m)
	}
	if l := q.text("level"); l != "" {
		args = append(args, "LEVEL", l)
	}
	v, err := k.do(q.ctx, args...)
	if err != nil {
		return nil, err
	}
	out := struct {
		Whole bool      `json:"whole"`
		Rows  []soonRow `json:"rows"`
	}{v.Elems[0].Int != 0, []soonRow{}}
	for _, e := range v.Elems[1].Elems {
		row := soonRow{At: e.Elems[0].Int, Level: e.Elems[1].Str, K: nameOf(e.Elems[2])}
		if i := e.Elems[3]; i.Kind != resp.KindNull {
			item := k.c.itemOf(row.Level, nameOf(i))
			row.Item = &item
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}
