package httplimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

// The middleware limits the requests of each address.
func ExampleNew() {
	c, err := ebb.Open(context.Background(), "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	l, err := limit.New(c, "api", limit.PerHour(1), limit.FailClosed)
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	h := httplimit.New(l)(hello)
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %s %q\n", w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "api";q=1;w=3600 ""
	// 429 "api";q=1;w=3600 "3600"
}
