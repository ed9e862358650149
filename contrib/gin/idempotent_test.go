package ginebb_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	ginebb "github.com/ebbdb/ebb/contrib/gin"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/idemtest"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

func TestGinIsIdempotent(t *testing.T) {
	gin.SetMode(gin.TestMode)
	idemtest.Run(t, idemtest.Framework{
		Serve: func(once *lock.OnceValue[httpidem.Response], o httpidem.Options, page idemtest.Page, seen func(int)) idemtest.Do {
			e := gin.New()
			e.Use(func(c *gin.Context) {
				c.Header("Outer", "yes")
				c.Next()
				seen(c.Writer.Status())
			}, ginebb.Idempotent(once, func(c *gin.Context) string { return c.GetHeader("User") }, o))
			e.POST("/", func(c *gin.Context) {
				body, _ := io.ReadAll(c.Request.Body)
				reply := page(httpidem.Key(c.Request), string(body))
				if reply.Fails {
					c.AbortWithStatusJSON(reply.Status, gin.H{"error": reply.Text})
					return
				}
				c.Header("Name", reply.Name)
				c.SetCookie("secret", "s", 0, "", "", false, false)
				c.String(reply.Status, "%s", reply.Text)
			})
			return idemtest.Handler(e)
		},
	})
}

// gin's status goes with the first byte, or at the end. Handlers before and after see it meanwhile.
func TestAStatusWithoutABodyAndAPanicAreGins(t *testing.T) {
	gin.SetMode(gin.TestMode)
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	once, err := lock.NewOnceValue[httpidem.Response](c, "api", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	e := gin.New()
	e.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusInternalServerError) }),
		ginebb.Idempotent(once, nil))
	runs := 0
	e.POST("/empty", func(c *gin.Context) {
		runs++
		c.Status(http.StatusNoContent)
		if c.Writer.Status() != http.StatusNoContent || c.Writer.Written() {
			t.Errorf("the status is %d, sent: %v", c.Writer.Status(), c.Writer.Written())
		}
	})
	e.POST("/panic", func(*gin.Context) {
		runs++
		if runs == 2 {
			panic("first")
		}
	})
	e.POST("/flush", func(c *gin.Context) {
		_, _ = c.Writer.WriteString("part")
		c.Writer.Flush()
		if c.Writer.Size() != 4 {
			t.Errorf("the size is %d, want 4", c.Writer.Size())
		}
	})
	for _, want := range []struct {
		path   string
		status int
		runs   int
	}{
		{"/empty", 204, 1}, {"/empty", 204, 1}, {"/panic", 500, 2}, {"/panic", 200, 3}, {"/panic", 200, 3},
		{"/none", 404, 3}, {"/none", 404, 3}, {"/flush", 200, 3}, {"/flush", 200, 3},
	} {
		r := httptest.NewRequest(http.MethodPost, want.path, nil)
		r.Header.Set("Idempotency-Key", want.path[1:])
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != want.status || runs != want.runs {
			t.Errorf("%s: %d after %d runs, want %d after %d", want.path, w.Code, runs, want.status, want.runs)
		}
	}
}
