package engine

func lockModule() module { return module{name: "ebb-lock-"} }

func (tx *Tx) nextLease(h *hit) int64       { return 0 }
func (tx *Tx) lapseLock(h *hit, key []byte) {}
