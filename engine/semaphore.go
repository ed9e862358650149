package engine

func semaphoreModule() module { return module{name: "ebb-semph"} }

func (tx *Tx) nextPermit(h *hit) int64           { return 0 }
func (tx *Tx) lapseSemaphore(h *hit, key []byte) {}
