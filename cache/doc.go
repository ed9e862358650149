// Package cache implements a cache that programs share, whose values go stale before they go away.
//
//	pages, err := cache.New(c, "page", cache.Options[string, string]{Fresh: time.Minute, TTL: 10 * time.Minute})
//	defer pages.Close()
//	p, err := pages.Get(ctx, "home", func(ctx context.Context, id string) (string, error) {
//		return "<h1>" + id + "</h1>", nil // from the database
//	})
//
// A value has two deadlines, and a key has at most one loader in all programs:
//
//	Get ─▶ fresh    the value
//	    ─▶ stale    the value at once; one program is elected, and loads the next in the background
//	    ─▶ missing  the elected call loads; the others wait for its value
//
// The elected call gets a lease and a token. The lease is renewed while the load runs, so that a load may
// take as long as it needs, and the lease ends soon after the loader's program has died. The value is stored
// only if the token is still the key's: Set, Stale and Delete end it, so that a value that was read before an
// invalidation cannot come back after it.
//
// An entry is a key, "{name:key}", so that a server evicts entries one by one. On ebb it is a string with
// FRESH, and Get is GETFRESH. On other servers it is a string with a head of 17 bytes (version, fresh
// deadline in ms, flag), the lease is the key "{name:key}:load", and each operation is one script that uses
// the server's time.
//
// Start reading at Cache.Get; package internal/fresh has the two layouts.
package cache
