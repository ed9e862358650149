package conn

import "context"

// LPush adds values at the head of a list, one after the other, so that the last value becomes
// the first element. It returns the list's length. O(n) for n values.
func (c *Conn) LPush(ctx context.Context, key string, values ...any) (int64, error) {
	return number(c.Do(ctx, append([]any{"LPUSH", key}, values...)...))
}

// RPush puts values at the end of a list, in order, and returns its length. O(n) for n
// values.
func (c *Conn) RPush(ctx context.Context, key string, values ...any) (int64, error) {
	return number(c.Do(ctx, append([]any{"RPUSH", key}, values...)...))
}

// LPop removes and returns the first element of a list. It returns ErrNil if the list does not
// exist. A list without elements is deleted. O(1). Block with BLPOP waits for an element.
func (c *Conn) LPop(ctx context.Context, key string) (string, error) {
	return text(c.Do(ctx, "LPOP", key))
}

// RPop removes and returns the last element of a list. It returns ErrNil if the list does not
// exist. O(1).
func (c *Conn) RPop(ctx context.Context, key string) (string, error) {
	return text(c.Do(ctx, "RPOP", key))
}

// LRange returns the elements from start to stop, both included; 0 is the first, -1 the
// last. It returns none if there is no such key. It costs O(s+n) for a start s elements
// from the nearer end, and n elements.
func (c *Conn) LRange(ctx context.Context, key string, start, stop int64) ([]string, error) {
	return texts(c.Do(ctx, "LRANGE", key, start, stop))
}

// LLen returns the length of a list; 0 if there is no such key. O(1).
func (c *Conn) LLen(ctx context.Context, key string) (int64, error) {
	return number(c.Do(ctx, "LLEN", key))
}
