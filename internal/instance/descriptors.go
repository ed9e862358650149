package instance

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
)

// reservedDescriptors are kept for files, listeners and connections to other servers, as in Redis.
const reservedDescriptors = 32

// descriptors is the division of the process's descriptors; 0: there is no limit.
type descriptors struct {
	clients int64 // the greatest maxclients
	http    int   // connections of the admin pages
}

// divide divides the descriptors of a limit.
func divide(limit int64, pages bool) (d descriptors) {
	if limit == 0 {
		return d
	}
	if pages {
		d.http = int(max(min(limit/16, adminhttp.DefaultConnections), 4))
	}
	d.clients = max(limit-reservedDescriptors-int64(d.http), 1)
	return d
}

// lowerMaxClients lowers maxclients to what the system allows.
func lowerMaxClients(cfg *config.Set, log *slog.Logger, limit int64, d descriptors) error {
	was := cfg.MaxClients()
	if d.clients == 0 || was <= d.clients {
		return nil
	}
	if err := cfg.Change(true, "maxclients", strconv.FormatInt(d.clients, 10)); err != nil {
		return fmt.Errorf("maxclients cannot be lowered to %d: %w", d.clients, err)
	}
	log.Warn("maxclients is lowered, because the system allows too few open files: raise the limit with ulimit -n, or LimitNOFILE of the unit",
		"was", was, "is", d.clients, "limit", limit, "reserved", limit-d.clients)
	return nil
}
