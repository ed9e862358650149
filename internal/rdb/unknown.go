package rdb

import "fmt"

// newTypes and newOpcodes have the types and opcodes that newer versions write and ebb does not
// read: the layouts of Redis's are not public, and ebb has no path hashes. A command in a file (242
// of Valkey) changes keys that were read before it. It occurs in full synchronisations without a
// fork, which a replica that identifies itself as Valkey 9.0 does not receive.
var (
	newTypes = map[Dialect]map[Type]string{
		Redis: {
			26: "a stream with idempotency", 27: "a stream with NACKs", 28: "an array",
			29: "a hash with a template", 30: "a hash with a template", 31: "a hash with a template", 32: "a hash with a template",
			34: "a set whose members have deadlines", 35: "a set whose members have deadlines",
		},
		Valkey: {23: "a path hash"},
	}
	newOpcodes = map[Dialect]map[byte]string{
		Redis:  {241: "a key that is not to be evicted", 242: "a template of hashes", 243: "metadata of a key"},
		Valkey: {242: "a command from a synchronisation without a fork"},
	}
)

// UnknownType is the error for a type that the Decoder does not know. It wraps ErrFormat.
type UnknownType struct {
	Type    Type
	Dialect Dialect // the dialect that defines the type's number
	Version int
}

// Name returns a text with the type's number and, if they are known, its name, server and version.
func (e *UnknownType) Name() string {
	if what := newTypes[e.Dialect][e.Type]; what != "" {
		return fmt.Sprintf("type %d (%s) of %s in version %d is not known", e.Type, what, e.Dialect, e.Version)
	}
	return fmt.Sprintf("type %d of %s in version %d is not known", e.Type, e.Dialect, e.Version)
}

func (e *UnknownType) Error() string { return ErrFormat.Error() + ": " + e.Name() }

// Unwrap returns ErrFormat.
func (e *UnknownType) Unwrap() error { return ErrFormat }

// dialectOf returns the dialect of a payload's version. Valkey uses versions from 80 on for its own
// format, and those below belong to Redis.
func dialectOf(version int) Dialect {
	if version >= valkeyVersion {
		return Valkey
	}
	return Redis
}

// VersionError is the error for a payload with a version that ebb does not read. It wraps
// ErrFooter.
type VersionError struct{ Version int }

// Name returns a text with the version, and with the versions that ebb reads.
func (e *VersionError) Name() string {
	return fmt.Sprintf("version %d, of which ebb reads up to %d of Redis, and %d to %d of Valkey", e.Version, valkeyVersion-1,
		valkeyVersion, valkeyNewest)
}

func (e *VersionError) Error() string { return ErrFooter.Error() + ": " + e.Name() }

// Unwrap returns ErrFooter.
func (e *VersionError) Unwrap() error { return ErrFooter }
