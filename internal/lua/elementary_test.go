package lua

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/realserver"
)

// The elementary functions give what C's library does: to the last bit in all but
// one case of fifty, and in all cases to the last but one. The rest is C's
// own error, which differs between processors.
func TestElementaryFunctionsAreC(t *testing.T) {
	lua := realserver.Program(t, "lua5.1")
	functions := []struct {
		name string
		f    func(x, y float64) float64
	}{
		{"sin", func(x, _ float64) float64 { return sin(x) }},
		{"cos", func(x, _ float64) float64 { return cos(x) }},
		{"tan", func(x, _ float64) float64 { return tan(x) }},
		{"asin", func(x, _ float64) float64 { return asin(x) }},
		{"acos", func(x, _ float64) float64 { return acos(x) }},
		{"atan", func(x, _ float64) float64 { return atan(x) }},
		{"sinh", func(x, _ float64) float64 { return sinh(x) }},
		{"cosh", func(x, _ float64) float64 { return cosh(x) }},
		{"tanh", func(x, _ float64) float64 { return tanh(x) }},
		{"exp", func(x, _ float64) float64 { return exp(x) }},
		{"log", func(x, _ float64) float64 { return log(x) }},
		{"log10", func(x, _ float64) float64 { return log10(x) }},
		{"pow", pow},
		{"atan2", atan2},
		{"fmod", math.Mod},
	}
	rng := rand.New(rand.NewPCG(3, 4))
	draw := func() float64 {
		switch rng.IntN(8) {
		case 0:
			return rng.Float64()
		case 1:
			return rng.Float64()*2 - 1
		case 2:
			return rng.Float64()*1500 - 750
		case 3:
			return float64(rng.IntN(200) - 100)
		case 4:
			return float64(rng.IntN(2000)-1000) / 100
		case 5:
			return 1 + (rng.Float64()-0.5)*math.Pow(10, -10*rng.Float64())
		case 6:
			return math.Float64frombits(rng.Uint64()) // any magnitude
		}
		return []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2, 3, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64,
			math.SmallestNonzeroFloat64, math.Pi, math.Pi / 2}[rng.IntN(14)]
	}
	const n = 4000
	var program strings.Builder
	var args [n][2]float64
	for i := range args {
		args[i] = [2]float64{draw(), draw()}
	}
	program.WriteString("local function run(x, y)\n")
	for _, f := range functions {
		fmt.Fprintf(&program, "io.write(string.format('%%.17g ', math.%s(x, y)))\n", f.name)
	}
	program.WriteString("io.write('\\n') end\nlocal nan = -(0/0)\n")
	literal := func(f float64) string {
		switch {
		case f != f:
			return "nan"
		case math.IsInf(f, 0):
			return strconv.FormatFloat(math.Copysign(1, f), 'g', -1, 64) + "/0"
		}
		return "tonumber('" + strconv.FormatFloat(f, 'g', 17, 64) + "')"
	}
	for _, a := range args {
		fmt.Fprintf(&program, "run(%s, %s)\n", literal(a[0]), literal(a[1]))
	}
	path := filepath.Join(t.TempDir(), "functions.lua")
	if err := os.WriteFile(path, []byte(program.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(lua, path).Output()
	if err != nil {
		t.Fatal(err)
	}
	differ := make([]int, len(functions))
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		for j, word := range strings.Fields(line) {
			want, err := strconv.ParseFloat(strings.TrimPrefix(word, "-nan"), 64)
			if err != nil {
				want = math.NaN()
			}
			got := functions[j].f(args[i][0], args[i][1])
			switch {
			case got == want && math.Signbit(got) == math.Signbit(want) || got != got && want != want:
				continue
			case math.Abs(got-want) > 3*math.Abs(want)*0x1p-52 || got != got || want != want:
				t.Errorf("%s(%v, %v) is %v, C has %v", functions[j].name, args[i][0], args[i][1], got, want)
			}
			differ[j]++
		}
	}
	for j, f := range functions {
		if differ[j] > n/50 {
			t.Errorf("%s differs in the last bits for %d of %d arguments", f.name, differ[j], n)
		}
	}
	t.Logf("of %d: %v", n, differ)
}
