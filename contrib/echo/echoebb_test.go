package echoebb_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	echoebb "github.com/ebbdb/ebb/contrib/echo"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/limittest"
	"github.com/ebbdb/ebb/limit"
)

func TestEchoIsLimited(t *testing.T) {
	limittest.Run(t, limittest.Framework[echo.Context]{
		Serve: func(l *limit.Limiter, o echoebb.Options, visit func()) limittest.Get {
			e := echo.New()
			e.Use(echoebb.New(l, o))
			e.GET("/", func(c echo.Context) error { visit(); return c.String(http.StatusOK, "hello") })
			return limittest.Handler(e)
		},
		Header: func(c echo.Context, name string) string { return c.Request().Header.Get(name) },
		Answer: echo.Context.String,
	})
}

func ExampleNew() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	l, err := limit.New(c, "api", limit.Per(1, time.Minute), limit.Local(0.5))
	if err != nil {
		panic(err)
	}
	router := echo.New()
	router.Use(echoebb.New(l))
	router.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "hello") })

	for range 2 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Printf("%d, policy %s, retry after %q\n", w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, policy "api";q=1;w=60, retry after ""
	// 429, policy "api";q=1;w=60, retry after "60"
}
