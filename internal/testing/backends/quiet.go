package backends

import (
	"context"
	"fmt"
	"net/url"

	"github.com/ebbdb/ebb"
)

// Quiet returns a connection of a user with all commands and keys and without channels:
// the user that "ACL SETUSER app on >secret ~* +@all" makes on Redis 7. It is nil on kinds
// without users, and on kinds with several servers.
func (b *Backend) Quiet() *ebb.Conn {
	b.t.Helper()
	u, err := url.Parse(b.site.url)
	if err != nil || u.Scheme != "redis" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	user := fmt.Sprintf("quiet-%d", b.nr)
	if _, err := b.Do(ctx, "ACL", "SETUSER", user, "reset", "on", ">secret", "~*", "resetchannels", "+@all"); err != nil {
		b.t.Fatal(err)
	}
	u.User = url.UserPassword(user, "secret")
	c, err := ebb.Open(ctx, u.String())
	if err != nil {
		b.t.Fatal(err)
	}
	if b.site.wrap != nil {
		c = b.site.wrap(c)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}
