package instance

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/ebbdb/ebb/internal/adminhttp"
	"github.com/ebbdb/ebb/internal/config"
)

// reservedDescriptors are reserved for files, listeners and connections to other servers, as in Redis.
const reservedDescriptors = 32

// descriptors divides the process's file descriptors among their uses; 0: no limit.
type descriptors struct {
	clients int64 // the greatest maxclients
	http    int   // connections of the admin pages
}

// divide divides a limit of descriptors. pages reports whether there are admin pages.
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

// lowerMaxClients lowers maxclients to the number that the system allows.
func lowerMaxClients(cfg *config.Set, log *slog.Logger, limit int64, d descriptors) error {
	was := cfg.MaxClients()
	if d.clients == 0 || was <= d.clients {
		return nil
	}
	if err := cfg.Change(true, "maxclients", strconv.FormatInt(d.clients, 10)); err != nil {
		return fmt.Errorf("cannot lower maxclients to %d: %w", d.clients, err)
	}
	log.Warn("lowered maxclients, because the system allows too few open files: raise the limit with ulimit -n, or LimitNOFILE of the unit",
		"was", was, "is", d.clients, "limit", limit, "reserved", limit-d.clients)
	return nil
}
