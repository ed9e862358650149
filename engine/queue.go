package engine

func queueModule() module { return module{name: "ebb-queue"} }

func (tx *Tx) lapseQueue(h *hit, key []byte, budget int) {}
