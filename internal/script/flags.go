package script

// Flags say how a script or function may be run.
type Flags uint8

// The flags, as a shebang line and redis.register_function name them.
const (
	NoWrites       Flags = 1 << iota // "no-writes": it never writes
	AllowOOM                         // "allow-oom": it runs when memory is used up
	AllowStale                       // "allow-stale": it runs on a replica that lost its primary
	NoCluster                        // "no-cluster": it does not run in a cluster
	AllowCrossSlot                   // "allow-cross-slot-keys"

	// Compat marks a script without a shebang line: the checks happen for each of its
	// commands.
	Compat
)

// flagNames lists the names in the order in which FUNCTION LIST shows them.
var flagNames = []struct {
	flag Flags
	name string
}{
	{NoWrites, "no-writes"},
	{AllowOOM, "allow-oom"},
	{AllowStale, "allow-stale"},
	{NoCluster, "no-cluster"},
	{AllowCrossSlot, "allow-cross-slot-keys"},
}

// Names returns the names of the flags that are set, in FUNCTION LIST's order.
func (f Flags) Names() []string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// flagNamed returns the flag of a name, 0 if there is none.
func flagNamed(name string) Flags {
	for _, n := range flagNames {
		if n.name == name {
			return n.flag
		}
	}
	return 0
}
