package groupsim

// history names the epochs whose masters wrote a log, as the replication ids of a server do: there is one for each epoch.
type history struct {
	newest uint64 // the epoch whose master wrote the end of the log
	before uint64 // the history before, which is the same up to until
	until  uint64
}

// begins reports whether another log, which ends at otherEnd, is the beginning of the log of this history, which ends at end. Then the
// rest can be sent.
func (h history) begins(other history, end, otherEnd uint64) bool {
	return otherEnd <= end && (other.newest == h.newest || other.newest == h.before && otherEnd <= h.until)
}

// adopt makes a log that ends at end the beginning of the history of an epoch: a new one, or that of a master.
func (h *history) adopt(epoch, end uint64) {
	if h.newest != epoch {
		*h = history{newest: epoch, before: h.newest, until: end}
	}
}
