package config

import (
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
)

// Words splits a line into words by the syntax of redis.conf, which is that of wire.SplitArgs. A zero byte ends the line.
// ok is false if the quotes are not balanced.
func Words(line string) (words []string, ok bool) {
	line, _, _ = strings.Cut(line, "\x00")
	return wire.SplitArgs(line)
}

// Quote writes a word so that Words reads it back, byte for byte.
func Quote(s string) string { return string(wire.AppendQuoted(nil, s)) }
