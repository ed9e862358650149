package instance

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
)

func TestMaxClientsLeavesDescriptorsForFiles(t *testing.T) {
	for _, c := range []struct {
		limit int64
		pages bool
		want  descriptors
	}{
		{0, true, descriptors{}},
		{1024, false, descriptors{992, 0}}, // as in redis-server
		{1024, true, descriptors{928, 64}},
		{1 << 20, true, descriptors{1<<20 - 32 - 256, 256}},
		{10, false, descriptors{1, 0}},
	} {
		if got := divide(c.limit, c.pages); got != c.want {
			t.Errorf("a limit of %d, pages %v: %+v, want %+v", c.limit, c.pages, got, c.want)
		}
	}
	var said bytes.Buffer
	log, cfg := slog.New(slog.NewTextHandler(&said, nil)), config.New()
	if err := lowerMaxClients(cfg, log, 1024, divide(1024, false)); err != nil {
		t.Fatal(err)
	}
	if got := cfg.MaxClients(); got != 992 || !strings.Contains(said.String(), "was=10000 is=992 limit=1024") {
		t.Errorf("maxclients %d; %s", got, &said)
	}
	said.Reset()
	if err := lowerMaxClients(cfg, log, 1<<20, divide(1<<20, false)); err != nil || cfg.MaxClients() != 992 || said.Len() > 0 {
		t.Errorf("maxclients %d, %v; %s", cfg.MaxClients(), err, &said)
	}
}
