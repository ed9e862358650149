package engine

func bloomModule() module { return module{name: "ebb-bloom"} }
