package fiberebb_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	fiberebb "github.com/ebbdb/ebb/contrib/fiber"

	"github.com/ebbdb/ebb/internal/testing/idemtest"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

func TestFiberIsIdempotent(t *testing.T) {
	idemtest.Run(t, idemtest.Framework{
		Serve: func(once *lock.OnceValue[httpidem.Response], o httpidem.Options, page idemtest.Page, seen func(int)) idemtest.Do {
			app := fiber.New()
			app.Use(func(c fiber.Ctx) error {
				c.Set("Outer", "yes")
				err := c.Next()
				seen(c.Response().StatusCode())
				return err
			}, fiberebb.Idempotent(once, func(c fiber.Ctx) string { return c.Get("User") }, o))
			app.Post("/", func(c fiber.Ctx) error {
				reply := page(httpidem.KeyFrom(c.Context()), string(c.Body()))
				if reply.Fails {
					return fiber.NewError(reply.Status, reply.Text)
				}
				c.Set("Name", reply.Name)
				c.Cookie(&fiber.Cookie{Name: "secret", Value: "s"})
				return c.Status(reply.Status).SendString(reply.Text)
			})
			return func(t testing.TB, r *http.Request) *http.Response {
				t.Helper()
				response, err := app.Test(r)
				if err != nil {
					t.Fatal(err)
				}
				return response
			}
		},
	})
}
