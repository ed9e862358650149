package lua

import "math"

// luaMod is Lua's %: the remainder has the sign of b. The product is converted
// so that no processor adds to it without rounding.
func luaMod(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// luaPow is Lua's ^.
func luaPow(a, b float64) float64 { return pow(a, b) }
