package console

import (
	"sync"

	"github.com/ebbdb/ebb/internal/engine"
)

// spans are the intervals of a forecast, by their names on the page. The intervals of the minute begin at
// full seconds, those of the hour at full minutes, and those of the day at full hours: so a forecast can name
// a common expiration by its time. Days are 24 hours from now.
var spans = map[string]struct {
	grid    int64 // ms
	step    int64 // ms
	buckets int
	of      func(c *engine.DueCounts) []int64
}{
	"minute": {1000, 1000, 60, func(c *engine.DueCounts) []int64 { return c.Seconds[:] }},
	"hour":   {60_000, 60_000, 60, func(c *engine.DueCounts) []int64 { return c.Minutes[:] }},
	"day":    {3_600_000, 3_600_000, 48, func(c *engine.DueCounts) []int64 { return c.Hours[:] }},
	"month":  {1, 86_400_000, 31, func(c *engine.DueCounts) []int64 { return c.Days[:] }},
}

// bucket is one interval of a forecast, in ms since 1970. Keys counts keys, and Containers the containers
// whose next item falls due in the interval. With a pattern, Keys counts keys and items.
type bucket struct {
	From       int64 `json:"from"`
	To         int64 `json:"to"`
	Keys       int64 `json:"keys"`
	Containers int64 `json:"containers"`
}

// forecast is the response of GET api/forecast.
type forecast struct {
	At      int64    `json:"at"`
	Span    string   `json:"span"`
	Exact   bool     `json:"exact"`
	Took    int64    `json:"took"` // ms
	Buckets []bucket `json:"buckets"`
	Later   int64    `json:"later"`
	Storm   *storm   `json:"storm"`
}

// storm is the bucket in which more than a tenth of all keys expire.
type storm struct {
	From  int64   `json:"from"`
	N     int64   `json:"n"`
	Share float64 `json:"share"`
}

// forecastKept is the time, in ms, for which a forecast with a pattern answers further requests. It visits
// all keys, so the console makes only one at a time.
const forecastKept = 10_000

// forecasts keeps the forecasts with a pattern. Its zero value is empty.
type forecasts struct {
	mu   sync.Mutex // held while a forecast is made
	last map[string]*forecast
	rest int64 // ms: the next one is not made before this instant
}

// forecastRest is the pause after a forecast with a pattern, in multiples of the time that it took: it walks
// over all keys.
const forecastRest = 20

// stormIn returns the bucket with the most deadlines if it has more than a tenth of the keys, otherwise nil.
func stormIn(buckets []bucket, keys int64) *storm {
	var most *bucket
	for i := range buckets {
		if b := &buckets[i]; most == nil || b.Keys+b.Containers > most.Keys+most.Containers {
			most = b
		}
	}
	n := most.Keys + most.Containers
	if keys < 100 || n*10 <= keys {
		return nil
	}
	return &storm{most.From, n, min(1, float64(n)/float64(keys))}
}
