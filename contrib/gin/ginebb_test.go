package ginebb_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	ginebb "github.com/ebbdb/ebb/contrib/gin"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/limittest"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

func TestGinIsLimited(t *testing.T) {
	gin.SetMode(gin.TestMode)
	limittest.Run(t, limittest.Framework[*gin.Context]{
		Serve: func(l *limit.Limiter, o httplimit.OptionsFor[*gin.Context], visit func()) limittest.Get {
			own := ginebb.Options{Key: o.Key, Proxies: o.Proxies, Cost: o.Cost, Policy: o.Policy}
			if o.Refused != nil {
				own.Refused = func(c *gin.Context) { _ = o.Refused(c) }
			}
			if o.Failed != nil {
				own.Failed = func(c *gin.Context, err error) { _ = o.Failed(c, err) }
			}
			e := gin.New()
			e.Use(ginebb.New(l, own))
			e.GET("/", func(c *gin.Context) { visit(); c.String(http.StatusOK, "hello") })
			return limittest.Handler(e)
		},
		Header: (*gin.Context).GetHeader,
		Answer: func(c *gin.Context, status int, text string) error {
			c.String(status, text)
			return nil
		},
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
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(ginebb.New(l))
	router.GET("/", func(c *gin.Context) { c.String(http.StatusOK, "hello") })

	for range 2 {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Printf("%d, policy %s, retry after %q\n", w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, policy "api";q=1;w=60, retry after ""
	// 429, policy "api";q=1;w=60, retry after "60"
}
