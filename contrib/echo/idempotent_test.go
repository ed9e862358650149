package echoebb_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	echoebb "github.com/ebbdb/ebb/contrib/echo"

	"github.com/ebbdb/ebb/internal/testing/idemtest"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

func TestEchoIsIdempotent(t *testing.T) {
	idemtest.Run(t, idemtest.Framework{
		Serve: func(once *lock.OnceValue[httpidem.Response], o httpidem.Options, page idemtest.Page, seen func(int)) idemtest.Do {
			e := echo.New()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					c.Response().Header().Set("Outer", "yes")
					err := next(c)
					seen(c.Response().Status)
					return err
				}
			}, echoebb.Idempotent(once, func(c echo.Context) string { return c.Request().Header.Get("User") }, o))
			e.POST("/", func(c echo.Context) error {
				body, _ := io.ReadAll(c.Request().Body)
				reply := page(httpidem.Key(c.Request()), string(body))
				if reply.Fails {
					return echo.NewHTTPError(reply.Status, reply.Text)
				}
				c.Response().Header().Set("Name", reply.Name)
				c.SetCookie(&http.Cookie{Name: "secret", Value: "s"})
				return c.String(reply.Status, reply.Text)
			})
			return idemtest.Handler(e)
		},
	})
}
