package engine

func limiterModule() module { return module{name: "ebb-limit"} }
