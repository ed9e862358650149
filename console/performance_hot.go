package console

import "time"

const (
	// hotRows is the number of hot keys that the screen shows.
	hotRows = 50
	// hotWatch is the time for which a request keeps the sampling of commands on: the screen reads every
	// two seconds.
	hotWatch = 15 * time.Second
	// hotSamples is the number of sampled calls below which shares mean nothing.
	hotSamples = 10
)

// hotRow is a key that clients use often.
type hotRow struct {
	K     blob    `json:"k"`
	DB    int     `json:"db"`
	QPS   float64 `json:"qps"`
	Share float64 `json:"share"` // of all calls with keys, 0 to 1
}

// getHot answers GET api/hot: the keys that clients have used most. The server samples commands for hotWatch
// after each request, whatever hotkey-top-k says.
func getHot(k *call, _ *request) (any, error) {
	out := struct {
		Rows    []hotRow `json:"rows"`
		Waiting bool     `json:"waiting"` // the first window has not ended
		Window  int64    `json:"window"`  // ms
		Percent int64    `json:"percent"` // the sampled share of the commands
		Few     bool     `json:"few"`     // the window has too few samples for shares
		Denied  []string `json:"denied,omitempty"`
	}{Rows: []hotRow{}}
	if !k.allowed([][]byte{[]byte("HOTKEYS"), []byte("GET")}) {
		out.Denied = k.denied
		return out, nil
	}
	w, ok := k.c.svc.HotKeys(hotRows, hotWatch)
	out.Few = ok && w.Total*float64(w.Span)/1e6*float64(k.c.svc.Config.Int("hotkey-sampling-percentage"))/100 < hotSamples
	readable := k.v.id.Reads(readers...)
	out.Waiting, out.Window = !ok, w.Span/1000
	for _, h := range w.Keys {
		if out.Few || !readable(h.Key) {
			continue
		}
		out.Rows = append(out.Rows, hotRow{K: bytesOf(string(h.Key)), DB: h.DB, QPS: h.QPS, Share: min(h.QPS/max(w.Total, 1e-9), 1)})
	}
	if !ok {
		out.Window = k.c.svc.Config.Int("hotkey-window-seconds") * 1000
	}
	out.Percent = k.c.svc.Config.Int("hotkey-sampling-percentage")
	return out, nil
}
