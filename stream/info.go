package stream

import (
	"context"
	"errors"
	"strings"

	"github.com/ebbdb/ebb/conn"
)

// Info describes the state of a stream at one instant.
type Info struct {
	Len           int64
	First, LastID string // IDs of the oldest entry and of the latest ever; "" if there is none
	Groups        []GroupInfo
}

// GroupInfo describes the state of a group.
type GroupInfo struct {
	Name          string
	Consumers     int64
	Pending       int64  // delivered, and neither acknowledged nor dead
	Lag           int64  // entries not yet delivered; -1: unknown, after deletions
	LastDelivered string // the ID up to which entries were delivered
}

// Info describes the stream and its groups; a stream that does not exist has the zero Info. It
// costs two commands, O(groups).
func (s *Stream[T]) Info(ctx context.Context) (Info, error) {
	var b conn.Batch
	b.Do("XINFO", "STREAM", s.name)
	b.Do("XINFO", "GROUPS", s.name)
	r, err := s.c.Tx(ctx, &b)
	if err == nil {
		err = errors.Join(r[0].Err(), r[1].Err())
	}
	if refused, ok := errors.AsType[conn.ReplyError](err); ok && strings.Contains(string(refused), "no such key") {
		return Info{}, nil
	}
	if err != nil {
		return Info{}, s.failed("info", err)
	}
	var i Info
	i.Len = fieldNumber(r[0], "length")
	if first, _ := r[0].Get("first-entry"); len(first.Elems) > 0 {
		i.First = first.Elems[0].Str
	}
	i.LastID = fieldText(r[0], "last-generated-id")
	for _, g := range r[1].Elems {
		i.Groups = append(i.Groups, GroupInfo{
			Name: fieldText(g, "name"), Consumers: fieldNumber(g, "consumers"), Pending: fieldNumber(g, "pending"),
			Lag: fieldNumber(g, "lag"), LastDelivered: fieldText(g, "last-delivered-id"),
		})
	}
	return i, nil
}

// fieldNumber is a number of a reply, -1 where there is none.
func fieldNumber(v conn.Value, name string) int64 {
	if x, ok := v.Get(name); ok {
		if n, err := x.AsInt(); err == nil {
			return n
		}
	}
	return -1
}

func fieldText(v conn.Value, name string) string {
	x, _ := v.Get(name)
	return x.Str
}
