package groupsim

// history names the masters that wrote a log, one epoch each, as the replication IDs of a server do.
type history struct {
	newest uint64 // the epoch whose master wrote the end of the log
	before uint64 // the previous history, which is the same up to until
	until  uint64
}

// begins reports whether the log of another history, which ends at otherEnd, is a prefix of this history's log, which
// ends at end. If so, the rest suffices.
func (h history) begins(other history, end, otherEnd uint64) bool {
	return otherEnd <= end && (other.newest == h.newest || other.newest == h.before && otherEnd <= h.until)
}

// adopt starts the history of an epoch, a new one or that of a master, on a log that ends at end.
func (h *history) adopt(epoch, end uint64) {
	if h.newest != epoch {
		*h = history{newest: epoch, before: h.newest, until: end}
	}
}
