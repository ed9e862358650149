package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// space compares the free space of the data's directory with the data: a snapshot or a rewrite writes a second copy before
// the first is removed.
func space(f *facts) []Finding {
	dir, used := f.config["dir"], f.num("used_memory")
	if !f.Local || dir == "" || used == 0 || f.config["save"] == "" && f.info["aof_enabled"] != "1" {
		return nil
	}
	n, err := f.Free(filepath.Join(f.Root, dir))
	if err != nil || n < 0 { // the directory is of a container, or the system does not say
		return nil
	}
	free := float64(n)
	what := fmt.Sprintf("%s has %s free, and the data takes %s", dir, size(free), size(used))
	const how = "free space on this disk, or move the directory to a larger one"
	switch {
	case free < used:
		return one(Act, "files", what, "the next snapshot or rewrite may not fit, and writes are refused when the disk is full", "", how)
	case free < 2*used:
		return one(Look, "files", what, "less than twice the data: a rewrite during growth fills the disk", "", how)
	}
	return fine("files", "%s", what)
}

// descriptors compares the limit of open files of the server's process with maxclients.
func descriptors(f *facts) []Finding {
	if !f.Local || f.info["process_id"] == "" {
		return nil
	}
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(f.Root, "proc", f.info["process_id"], name))
		return string(text)
	}
	// The number may be that of a container, and another program's here.
	if name := read("comm"); !strings.Contains(name, "ebb") && !strings.Contains(name, "redis") && !strings.Contains(name, "valkey") {
		return nil
	}
	limit := -1.0
	for line := range strings.Lines(read("limits")) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if words := strings.Fields(rest); len(words) > 0 && words[0] != "unlimited" {
				limit, _ = strconv.ParseFloat(words[0], 64)
			}
		}
	}
	const (
		spare = 32   // files and listeners, as Redis reserves
		few   = 4096 // a pool of 50 connections in 80 programs
	)
	how := "LimitNOFILE=65536 in the unit (systemctl edit), or ulimit -n 65536 before the start"
	switch clients := f.setting("maxclients"); {
	case limit < 0:
		return nil
	case limit < clients+spare:
		return one(Act, "clients", fmt.Sprintf("the limit of open files is %.0f, and maxclients %.0f", limit, clients),
			"connections fail before maxclients is reached, and so do snapshots", "", how)
	case limit < few:
		return one(Look, "clients", fmt.Sprintf("the limit of open files is %.0f", limit),
			"the server lowers maxclients to it at the start", "", how)
	default:
		return fine("clients", "%.0f files may be open", limit)
	}
}
