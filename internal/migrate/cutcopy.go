package migrate

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// barrier returns when all events of writes before the call have arrived: a server sends the reply to PING behind them.
func (s *source) barrier(ctx context.Context) error {
	if err := s.ping(ctx, cutoverToken); err != nil {
		return again(err)
	}
	select {
	case _, ok := <-s.pongs:
		if !ok {
			return fmt.Errorf("FROM %s: the connection with its events was cut: %w", s.p, errAgain)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cutCopy holds the writes of all sources and copies what is left.
func (m *Migration) cutCopy(ctx context.Context) error {
	c := m.copies
	if err := c.follow(ctx, func() bool { return c.lag() < fewKeys }); err != nil {
		return err
	}
	began, equal, err := m.cut(ctx, c.finish, "TO holds a copy that is no longer followed")
	if err != nil {
		return err
	}
	m.out.line("TO %s has everything. Writes were held for %s (%s until TO had the last one)", m.to, millis(time.Since(began)), millis(equal))
	return m.after(ctx)
}

// finish copies what has changed before the call, streams, functions and rules. The sources hold writes.
func (c *copier) finish(ctx context.Context) error {
	err := c.each(func(s *source) error {
		if err := s.barrier(ctx); err != nil {
			return err
		}
		keys := s.take()
		if keys == nil {
			keys = map[place]bool{}
		}
		for k := range s.streams {
			keys[k] = true
		}
		return s.copyKeys(ctx, keys)
	})
	if err == nil {
		err = c.rules(ctx)
	}
	if err != nil {
		return err
	}
	return c.conclude(ctx)
}

// conclude copies the functions after all keys, and fails if TO has refused a key.
func (c *copier) conclude(ctx context.Context) error {
	if err := c.functions(ctx); err != nil {
		return err
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	to, err := c.m.to.section(ctx, "stats")
	if err != nil {
		return err
	}
	if n := number(to, "evicted_keys") - c.evicted; n > 0 {
		return fmt.Errorf("TO %s has evicted %d keys, because it has reached its maxmemory: CONFIG SET maxmemory on TO, and begin "+
			"again with --replace", c.m.to, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuses > 0 {
		return fmt.Errorf("TO %s refused %d keys: %s", c.m.to, c.refuses, strings.Join(c.refused, "; "))
	}
	return nil
}

// functions copies the libraries of functions. Servers before 7.0 have none. Where the user may not list them, they would be missing on TO.
// From one source, TO's libraries become the source's: a function may have moved into another library.
func (c *copier) functions(ctx context.Context) error {
	how := "REPLACE"
	if len(c.sources) == 1 {
		how = "FLUSH"
	}
	for _, s := range c.sources {
		v, err := s.p.do(ctx, "FUNCTION", "LIST")
		if isRefusal(err) && !s.p.exact { // PEXPIRETIME came with the functions
			continue
		}
		if err != nil {
			return fmt.Errorf("functions are not copied: %w", err)
		}
		if len(v.Elems) == 0 {
			if err := c.forgetFunctions(ctx, how); err != nil {
				return err
			}
			continue
		}
		if v, err = s.p.do(ctx, "FUNCTION", "DUMP"); err != nil {
			return fmt.Errorf("functions are not copied: %w", err)
		}
		if _, err := c.m.to.do(ctx, "FUNCTION", "RESTORE", v.Str, how); err != nil {
			return err
		}
	}
	return nil
}

// forgetFunctions deletes the libraries of TO if the only source has none.
func (c *copier) forgetFunctions(ctx context.Context, how string) error {
	has, _, err := functionsOf(ctx, c.m.to)
	if err == nil && len(has) > 0 && how == "FLUSH" {
		_, err = c.m.to.do(ctx, "FUNCTION", "FLUSH")
	}
	return err
}
