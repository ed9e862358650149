package console

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// route is an endpoint under api/. An endpoint that is not in the table does not exist.
type route struct {
	method, path string
	// open routes answer requests without a login.
	open bool
	// lasts means that the response is a stream.
	lasts bool
	// named means that parameters are names or patterns, which may be too long for an address: the route answers
	// POST like GET, with the parameters in the body, an object of texts.
	named bool
	// answer returns the value to write as JSON, nil for 204, or errSent after it has written to request.w
	// itself.
	answer func(c *Console, q *request) (any, error)
}

// routes is the table of the API.
func routes() []route {
	return []route{
		{method: "POST", path: "login", open: true, answer: postLogin},
		{method: "POST", path: "logout", open: true, answer: postLogout},
		{method: "GET", path: "me", answer: getMe},
		{method: "POST", path: "do", answer: postDo},
		{method: "POST", path: "batch", answer: postBatch},
		{method: "GET", path: "audit", answer: getAudit},
		{method: "GET", path: "commands", answer: getCommands},
		{method: "GET", path: "help", answer: getHelp},
		{method: "GET", path: "keys", named: true, answer: withCall(getKeys)},
		{method: "GET", path: "key", named: true, answer: withCall(getKey)},
		{method: "GET", path: "forecast", named: true, answer: withCall(getForecast)},
		{method: "GET", path: "lag", answer: withCall(getLag)},
		{method: "GET", path: "soon", named: true, answer: withCall(getSoon)},
		{method: "GET", path: "feed", named: true, lasts: true, answer: getFeed},
		{method: "GET", path: "samples", answer: getSamples},
		{method: "GET", path: "concerns", answer: withCall(getConcerns)},
		{method: "GET", path: "limits", named: true, answer: withCall(getLimits)},
		{method: "GET", path: "locks", named: true, answer: withCall(getLocks)},
		{method: "GET", path: "lock", named: true, answer: withCall(getLock)},
		{method: "GET", path: "queues", named: true, answer: withCall(getQueues)},
		{method: "GET", path: "queue", named: true, answer: withCall(getQueue)},
		{method: "GET", path: "streams", named: true, answer: withCall(getStreams)},
		{method: "GET", path: "stream", named: true, answer: withCall(getStream)},
		{method: "GET", path: "clients", answer: withCall(getClients)},
		{method: "GET", path: "slowlog", answer: withCall(getSlowlog)},
		{method: "GET", path: "hot", answer: withCall(getHot)},
		{method: "GET", path: "server", answer: withCall(getServer)},
		{method: "GET", path: "performance", answer: withCall(getPerformance)},
		{method: "GET", path: "latency", answer: withCall(getLatency)},
		{method: "GET", path: "scripts", answer: withCall(getScripts)},
		{method: "GET", path: "replication", answer: withCall(getReplication)},
		{method: "GET", path: "group", answer: withCall(getGroup)},
		{method: "GET", path: "files", answer: withCall(getFiles)},
		{method: "GET", path: "config", answer: withCall(getConfig)},
		{method: "GET", path: "acl", answer: withCall(getACL)},
		{method: "GET", path: "acllog", answer: withCall(getACLLog)},
		{method: "POST", path: "walk", answer: postWalk},
		{method: "GET", path: "walk", answer: getWalk},
		{method: "DELETE", path: "walk", answer: deleteWalk},
	}
}

// serve answers a request.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if name, ok := strings.CutPrefix(path, "api/"); ok {
		c.serveAPI(w, r, name)
		return
	}
	c.serveUI(w, r, path)
}

// serveAPI answers a request for api/name.
func (c *Console) serveAPI(w http.ResponseWriter, r *http.Request, name string) {
	methods := c.api[name]
	if methods == nil {
		writeFailure(w, &failure{status: http.StatusNotFound, Text: "the console has no endpoint api/" + name})
		return
	}
	at := methods[r.Method]
	if at == nil {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
		writeFailure(w, &failure{status: http.StatusMethodNotAllowed, Text: "api/" + name + " has no method " + r.Method})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	if f := vet(r); f != nil {
		writeFailure(w, f)
		return
	}
	q := &request{w: w, r: r, ctx: r.Context(), params: r.URL.Query()}
	if !at.open {
		var err error
		if q.v, err = c.viewerOf(r); err != nil {
			writeFailure(w, failureOf(err))
			return
		}
	}
	leave, err := c.admit(q)
	if err != nil {
		writeFailure(w, failureOf(err))
		return
	}
	defer leave()
	defer func() {
		if q.release != nil {
			q.release()
		}
	}()
	answer, err := c.answer(at, q)
	switch {
	case err == errSent:
	case err != nil:
		writeFailure(w, failureOf(err))
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

// answer returns the answer of a route. It reads the body before it takes a share, so that a client that
// sends slowly holds none.
func (c *Console) answer(at *route, q *request) (any, error) {
	if q.r.Method == http.MethodPost {
		if err := q.read(); err != nil {
			return nil, err
		}
		if at.named {
			if err := q.parseBody(); err != nil {
				return nil, err
			}
		}
	}
	if !at.open && !at.lasts {
		if err := q.share(c); err != nil {
			return nil, err
		}
	}
	return at.answer(c, q)
}

// withCall returns the handler of a route from a function that runs commands: it gets a session of the viewer, in the
// database that the parameter db names.
func withCall(answer func(k *call, q *request) (any, error)) func(c *Console, q *request) (any, error) {
	return func(c *Console, q *request) (any, error) {
		db, err := q.number("db", 0, 0, int64(c.svc.DB.Databases())-1)
		if err != nil {
			return nil, err
		}
		k, err := c.from(q, int(db))
		if err != nil {
			return nil, err
		}
		defer k.release()
		a, err := answer(k, q)
		return a, k.named(err)
	}
}
