package rdb

import "fmt"

// newTypes and newOpcodes are what newer versions write, and ebb does not read: the layout
// of Redis's is not public, and ebb has no path hashes. A command in a file (242 of Valkey)
// changes keys that were read before it: it comes in full synchronisations that are taken
// without a fork, of which a replica that calls itself Valkey 9.0 gets none.
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

// UnknownType is the error about a type that no decoder knows. It is an ErrFormat.
type UnknownType struct {
	Type    Type
	Dialect Dialect // whose numbers the types are
	Version int
}

// Name returns the type's number and, if that is known, what it is, whose, and since when.
func (e *UnknownType) Name() string {
	if what := newTypes[e.Dialect][e.Type]; what != "" {
		return fmt.Sprintf("type %d (%s) of %s in version %d is not known", e.Type, what, e.Dialect, e.Version)
	}
	return fmt.Sprintf("type %d of %s in version %d is not known", e.Type, e.Dialect, e.Version)
}

func (e *UnknownType) Error() string { return ErrFormat.Error() + ": " + e.Name() }

// Unwrap makes it an ErrFormat.
func (e *UnknownType) Unwrap() error { return ErrFormat }

// dialectOf returns whose version of the format a payload's is: Valkey has counted from 80
// on since it went its own way, and leaves the numbers below to Redis.
func dialectOf(version int) Dialect {
	if version >= valkeyVersion {
		return Valkey
	}
	return Redis
}

// VersionError is the error about a payload of a version that is not read. It is an
// ErrFooter.
type VersionError struct{ Version int }

// Name returns the version, and those that are read.
func (e *VersionError) Name() string {
	return fmt.Sprintf("version %d, of which ebb reads up to %d of Redis, and %d to %d of Valkey", e.Version, valkeyVersion-1, valkeyVersion, valkeyNewest)
}

func (e *VersionError) Error() string { return ErrFooter.Error() + ": " + e.Name() }

// Unwrap makes it an ErrFooter.
func (e *VersionError) Unwrap() error { return ErrFooter }
