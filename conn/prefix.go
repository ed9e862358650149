package conn

import (
	"fmt"
	"strings"
)

// Prefix returns the text with which the names of this Conn's objects begin at the backend; "" if there is
// none.
func (c *Conn) Prefix() string { return c.prefix }

// WithPrefix returns a view of the Conn whose objects have names that begin with prefix at the
// backend: after it, queue.New(view, "mail") is the queue "shop:mail". The objects are those of
// the toolkit, Redisson's layouts included; their helper keys, channels and rules follow the
// name. The prefix does not change the keys of commands (Do, Get, Pipeline, Script ...), the
// channels of Subscribe, and the keys of Track.
//
// If the Conn already has a prefix, that one comes first: a view "eu:" of "shop:" has "shop:eu:". A prefix
// should end with a separator, such as ":", so that the objects of two prefixes do not collide; neither of
// two such prefixes may begin with the other. A hash tag in the prefix takes precedence over one in a name.
// Braces that are not a hash tag are ErrArgument.
//
// The view shares all resources of the Conn and ends with it. Closing the view does nothing.
// A Conn over a Wrapper has the prefix of the Conn that it wraps.
func (c *Conn) WithPrefix(prefix string) (*Conn, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	view := &Conn{d: c.d, handle: c.handle, of: c, wait: c.wait}
	if c.of != nil {
		view.of = c.of
	}
	view.setPrefix(c.prefix + prefix)
	return view, nil
}

// NewPrefixed returns a Conn over a driver as New does. The names of its objects begin with
// prefix; see WithPrefix. After an error the caller closes the driver.
func NewPrefixed(d Driver, prefix string) (*Conn, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	c := New(d)
	c.setPrefix(c.prefix + prefix)
	return c, nil
}

func (c *Conn) setPrefix(prefix string) {
	if c.prefix = prefix; prefix != "" {
		c.shown = fmt.Sprintf(", objects under %q", prefix)
	}
}

// inherited returns the prefix of the Conn that a driver wraps.
func inherited(d Driver) string {
	if w, ok := d.(Wrapper); ok {
		if c := w.Unwrap(); c != nil {
			return c.prefix
		}
	}
	return ""
}

// checkPrefix refuses braces that are not a hash tag, because the helper keys of an object must be in its
// slot.
func checkPrefix(prefix string) error {
	_, rest, open := strings.Cut(prefix, "{")
	if !strings.ContainsAny(prefix, "{}") || open && strings.Index(rest, "}") > 0 {
		return nil
	}
	return fmt.Errorf(`%w: the prefix %q has braces that are not a hash tag; it must have none, or a "{" that is followed by `+
		`at least one character and "}", as in "{shop}:"`, ErrArgument, prefix)
}
