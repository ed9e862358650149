package lua

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
)

// math.sin and its like, and the operator ^, differ from the servers' in the last digits at most. The results also differ
// between processors.
func TestMathDiffersFromTheServersInTheLastDigits(t *testing.T) {
	s, _ := libraryFunction("math", "pi")
	library := s.Globals().GetString("math").table()
	functions := strings.Fields("sin cos tan asin acos atan sinh cosh tanh exp log log10 pow atan2 fmod")
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
	var args [n][2]float64
	var numbers strings.Builder
	for i := range args {
		args[i] = [2]float64{draw(), draw()}
		for _, x := range args[i] {
			numbers.WriteString(strconv.FormatFloat(x, 'g', 17, 64) + " ")
		}
	}
	program := `local out, x = {}, nil
for word in ARGV[1]:gmatch('%S+') do
	local y = ({['+Inf'] = 1/0, ['-Inf'] = -1/0, ['NaN'] = -(0/0)})[word] or tonumber(word)
	if x then
		for name in ARGV[2]:gmatch('%S+') do out[#out+1] = string.format('%.17g', math[name](x, y)) end
		x = nil
	else
		x = y
	end
end
return table.concat(out, ' ')`
	for _, server := range compat.All.Programs() {
		t.Run(server, func(t *testing.T) {
			eval := evalAt(t, server)
			differ, worst := map[string]int{}, map[string]float64{}
			for i, word := range strings.Fields(eval(program, numbers.String(), strings.Join(functions, " "))) {
				a, name := args[i/len(functions)], functions[i%len(functions)]
				want, err := strconv.ParseFloat(strings.TrimPrefix(word, "-nan"), 64)
				if err != nil {
					want = math.NaN()
				}
				v, err := s.Main().Call1(library.GetString(name), Number(a[0]), Number(a[1]))
				if err != nil {
					t.Fatal(err)
				}
				got := v.number()
				if got == want && math.Signbit(got) == math.Signbit(want) || got != got && want != want {
					continue
				}
				differ[name]++
				off := math.Abs(got-want) / max(math.Abs(want), 0x1p-1022) / 0x1p-52
				worst[name] = max(worst[name], off)
				ends := name == "pow" && math.Abs(a[0]) < 0x1p-1022 ||
					(name == "sinh" || name == "cosh") && math.Abs(a[0]) > 709
				if !(off <= 1000) && !ends {
					t.Errorf("%s(%v, %v) is %v, the server has %v", name, a[0], a[1], got, want)
				}
			}
			covered, err := compat.Covers("math-last-digits", server)
			if err != nil || covered != (len(differ) > 0) {
				t.Errorf("math-last-digits: %v, %v, differ %v", covered, err, differ)
			}
			t.Logf("of %d differ %v, at most by units in the last place: %v", n, differ, worst)
		})
	}
}
