package lua

// OpenLibs adds the libraries of Lua to a State's environment: base, coroutine,
// table, math, string.
func (s *State) OpenLibs() {
	openBase(s)
	openCoroutine(s)
	openTable(s)
	openMath(s)
	openString(s)
}
