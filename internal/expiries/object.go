package expiries

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
)

// Object is a map, a set, or a family of these, whose expirations OnExpired delivers.
type Object struct {
	*Feed
	Kind   string       // "map" or "set": expmap and expset
	Home   string       // its name
	Logger *slog.Logger // nil: no log
	Absent error        // the package's ErrNoEvents if the object records no events, else nil
}

// ListenOptions are those of expmap and expset.
type ListenOptions struct {
	Consumer   string
	ClaimAfter time.Duration
}

// OnExpired does the work of the methods of this name. given: the caller of those has given a function. name is that of the object in its
// family, "" without a family.
func (x *Object) OnExpired(ctx context.Context, listener string, o ListenOptions, given bool,
	fn func(ctx context.Context, name string, e Entry) error) error {
	if x.Absent != nil {
		return fmt.Errorf("%w: set Options.Events in this program and in those that write the object", x.Absent)
	}
	if err := kit.Callable(given, "fn"); err != nil {
		return err
	}
	failed := func(err error) {
		if x.Logger != nil {
			x.Logger.Warn("exp"+x.Kind+": "+err.Error(), x.Kind, x.Home, "listener", listener)
		}
	}
	prefix := kit.Key(x.Home, "")
	return x.Listen(ctx, Options{Group: listener, Consumer: o.Consumer, Redeliver: o.ClaimAfter, Failed: failed},
		func(ctx context.Context, e Entry) error {
			name := ""
			if x.Index != "" {
				name = strings.TrimPrefix(e.Key, prefix)
			}
			return fn(ctx, name, e)
		})
}
