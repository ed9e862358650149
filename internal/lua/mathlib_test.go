package lua

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// math.random gives Redis's numbers after every seed.
func TestRandomIsRedis(t *testing.T) {
	eval := redisEval(t)
	rng := rand.New(rand.NewPCG(11, 12))
	seeds := []int{0, 1, -1, 42, 1 << 31, 1<<31 - 1, -1 << 31, 1e10, -1e15, 1 << 53}
	for range 40 {
		seeds = append(seeds, int(rng.Int32()))
	}
	s, random := libraryFunction("math", "random")
	randomseed := s.Globals().GetString("math").table().GetString("randomseed")
	var got []string
	call := func(args ...Value) {
		v, err := s.Main().Call1(random, args...)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%.17e", v.number()))
	}
	program := "local out = {}\nlocal function add(f) out[#out+1] = string.format('%.17e', f) end\n"
	// A server begins where no seed was set.
	for range 3 {
		call()
		program += "add(math.random())\n"
	}
	for _, seed := range seeds {
		if _, err := s.Main().Call(randomseed, Int(seed)); err != nil {
			t.Fatal(err)
		}
		call()
		call(Int(seed&0xffff + 1))
		call(Int(-5), Int(5))
		call(Int(-1<<31), Int(1<<31-2)) // wider than an int
		call(Int(1<<32 + 5))
		program += fmt.Sprintf("math.randomseed(%d) add(math.random()) add(math.random(%d)) add(math.random(-5, 5)) "+
			"add(math.random(-2147483648, 2147483646)) add(math.random(4294967301))\n", seed, seed&0xffff+1)
	}
	if want := eval(program + "return table.concat(out, ' ')"); strings.Join(got, " ") != want {
		t.Errorf("ours  %s\nredis %s", strings.Join(got, " "), want)
	}
}

// What has no result is the NaN of C's function, whose sign tostring shows, and
// the zeros have C's sign.
func TestMathOfOddNumbersIsRedis(t *testing.T) {
	eval := redisEval(t)
	odd := map[string]Value{
		"-(0/0)": Number(nan), "0/0": Number(minusNaN), "1/0": Number(math.Inf(1)), "-1/0": Number(math.Inf(-1)),
		"-1": Int(-1), "2": Int(2), "-2": Int(-2), "0": Int(0), "-0": Number(math.Copysign(0, -1)), "0.5": Number(0.5), "-0.5": Number(-0.5),
		"1e300": Number(1e300), "-1e300": Number(-1e300),
	}
	text := func(f float64) string {
		switch {
		case f == 0:
			return fmt.Sprint(f)
		case f != f && Number(f) == Number(minusNaN):
			return "-nan"
		}
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%.10e", f), "+"))
	}
	s, _ := libraryFunction("math", "pi")
	library := s.Globals().GetString("math").table()
	names := strings.Fields("abs acos asin atan ceil cosh cos deg exp floor log10 log rad sinh sin sqrt tanh tan frexp modf")
	names2 := strings.Fields("atan2 fmod pow max min ldexp")
	program := "local nz = -tonumber('0')\nlocal out = {}\nlocal function add(...) for i = 1, select('#', ...) do local f = select(i, ...) " +
		"out[#out+1] = f == 0 and tostring(f) or string.format('%.10e', f) end end\n"
	var got, calls []string
	for x, xv := range odd {
		if x == "-0" {
			x = "nz"
		}
		run := func(name, list string, args ...Value) {
			program += fmt.Sprintf("add(math.%s(%s))\n", name, list)
			vs, err := s.Main().Call(library.GetString(name), args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range vs {
				got = append(got, text(v.number()))
				calls = append(calls, name+"("+list+")")
			}
		}
		for _, name := range names {
			run(name, x, xv)
		}
		for y, yv := range odd {
			if y == "-0" {
				y = "nz"
			}
			for _, name := range names2 {
				if name == "ldexp" && yv.number()-yv.number() != 0 {
					continue // the integer that C makes of it depends on the machine
				}
				run(name, x+", "+y, xv, yv)
			}
		}
	}
	want := strings.Fields(eval(program + "return table.concat(out, ' ')"))
	if len(want) != len(got) {
		t.Fatalf("%d results, redis has %d", len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("%s: ours %s, redis %s", calls[i], got[i], want[i])
		}
	}
}
