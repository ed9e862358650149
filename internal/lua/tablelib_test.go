package lua

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// libraryFunction is a function of a library of a new State.
func libraryFunction(library, name string) (*State, Value) {
	s := New()
	openTable(s)
	openMath(s)
	return s, s.Globals().GetString(library).table().GetString(name)
}

// Libraries are entered in Lua's order, so pairs shows them in Redis's.
func TestLibraryOrderIsRedis(t *testing.T) {
	eval := redisEval(t)
	for _, name := range []string{"table", "math"} {
		s, _ := libraryFunction("math", "pi")
		var names []string
		library := s.Globals().GetString(name).table()
		for k, _, _ := library.Next(Nil); !k.IsNil(); k, _, _ = library.Next(k) {
			names = append(names, k.str())
		}
		want := eval(`local n = {} for k in pairs(` + name + `) do n[#n+1] = k end return table.concat(n, " ")`)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("ours  %s\nredis %s", got, want)
		}
	}
}

// table.sort makes the comparisons of Redis's, with orders that are none as well,
// and ends with the same items or the same error.
func TestSortComparesAsRedis(t *testing.T) {
	eval := redisEval(t)
	orders := []struct {
		program string
		less    func(a, b int) bool
	}{
		{"a < b", func(a, b int) bool { return a < b }},
		{"a > b", func(a, b int) bool { return a > b }},
		{"a <= b", func(a, b int) bool { return a <= b }},
		{"true", func(a, b int) bool { return true }},
		{"false", func(a, b int) bool { return false }},
		{"a * 7 % 5 <= b * 3 % 4", func(a, b int) bool { return a*7%5 <= b*3%4 }},
		{"a % 3 < b % 3", func(a, b int) bool { return a%3 < b%3 }},
	}
	s, sort := libraryFunction("table", "sort")
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 700 {
		order := orders[round%len(orders)]
		items := make([]Value, rng.IntN(1+round/10))
		var list []string
		for i := range items {
			n := rng.IntN(1 + 2*len(items))
			items[i] = Int(n)
			list = append(list, fmt.Sprint(n))
		}
		want := eval(fmt.Sprintf(`
			local t, out = {%s}, {}
			local ok, e = pcall(table.sort, t, function(a, b)
				out[#out+1] = tostring(a) .. "<" .. tostring(b)
				if not a or not b then error("nil", 0) end
				return %s
			end)
			return table.concat(out, " ") .. tostring(e) .. table.concat(t, ",")`, strings.Join(list, ","), order.program))

		table, err := s.NewArray(items)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		text := func(v Value) string {
			if f, ok := v.AsNumber(); ok {
				return fmt.Sprint(f)
			}
			return "nil"
		}
		less := func(c Call) error {
			a, b := c.Arg(1), c.Arg(2)
			out = append(out, text(a)+"<"+text(b))
			if a.IsNil() || b.IsNil() {
				return &Error{Value: String("nil")}
			}
			return c.Return(Bool(order.less(int(a.number()), int(b.number()))))
		}
		_, err = s.Main().Call(sort, TableValue(table), BuiltinValue(&Builtin{Name: "less", Run: less}))
		got := strings.Join(out, " ")
		if err != nil {
			got += err.Error()
		} else {
			got += "nil"
		}
		list = list[:0]
		for i := range items {
			list = append(list, text(table.GetInt(i+1)))
		}
		if got += strings.Join(list, ","); got != want {
			t.Fatalf("%s\nours  %s\nredis %s", order.program, got, want)
		}
	}
}

// Without a comparison function the result is that of <, for numbers and for
// strings, in the array part or not.
func TestSortOrders(t *testing.T) {
	s, sort := libraryFunction("table", "sort")
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n := rng.IntN(200)
		var numbers []float64
		var words []string
		inArray, inHash := s.NewTable(n, 0), s.NewTable(0, 0)
		texts := s.NewTable(0, 0)
		for range n {
			numbers = append(numbers, float64(rng.IntN(2*n)))
			words = append(words, strings.Repeat("\x00a\xff"[rng.IntN(3):], rng.IntN(4)))
		}
		for i := n; i >= 1; i-- { // downwards: the hash part takes some
			for table, v := range map[*Table]Value{inArray: Number(numbers[i-1]), inHash: Number(numbers[i-1]), texts: String(words[i-1])} {
				if err := table.SetInt(i, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		slices.Sort(numbers)
		slices.Sort(words)
		for _, table := range []*Table{inArray, inHash, texts} {
			if _, err := s.Main().Call(sort, TableValue(table)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			if a, h := inArray.GetInt(i+1).number(), inHash.GetInt(i+1).number(); a != numbers[i] || h != numbers[i] {
				t.Fatalf("item %d of %d is %v and %v, want %v", i+1, n, a, h, numbers[i])
			}
			if got := texts.GetInt(i + 1).str(); got != words[i] {
				t.Fatalf("item %d of %d is %q, want %q", i+1, n, got, words[i])
			}
		}
	}
}

// table.insert and table.remove move items as Redis's do, at any position, with
// items in the array part, in the hash part, or in both.
func TestInsertAndRemoveAreRedis(t *testing.T) {
	eval := redisEval(t)
	s, insert := libraryFunction("table", "insert")
	remove := s.Globals().GetString("table").table().GetString("remove")
	rng := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		table := s.NewTable(0, 0)
		program := "local t, out = {}, {}\n"
		var out []string
		for step := range 60 {
			at := rng.IntN(12) - 2
			var err error
			args := []Value{TableValue(table)}
			f := insert
			switch rng.IntN(5) {
			case 0, 1:
				args = append(args, Int(step))
				program += fmt.Sprintf("table.insert(t, %d)\n", step)
			case 2:
				args = append(args, Int(at), Int(step))
				program += fmt.Sprintf("table.insert(t, %d, %d)\n", at, step)
			case 3:
				f = remove
				program += "out[#out+1] = tostring((table.remove(t)))\n"
			case 4:
				f = remove
				args = append(args, Int(at))
				program += fmt.Sprintf("out[#out+1] = tostring((table.remove(t, %d)))\n", at)
			}
			v, err := s.Main().Call1(f, args...)
			if err != nil {
				t.Fatal(err)
			}
			if Equal(f, remove) {
				out = append(out, plain(v))
			}
		}
		program += `for k, v in pairs(t) do out[#out+1] = k .. "=" .. v end return table.concat(out, " ") .. #t`
		for k, v, _ := table.Next(Nil); !k.IsNil(); k, v, _ = table.Next(k) {
			out = append(out, plain(k)+"="+plain(v))
		}
		got := strings.Join(out, " ") + fmt.Sprint(table.Len())
		if want := eval(program); got != want {
			t.Fatalf("%s\nours  %s\nredis %s", program, got, want)
		}
	}
}

// plain is a small integer or nil as tostring shows it.
func plain(v Value) string {
	if f, ok := v.AsNumber(); ok {
		return fmt.Sprint(f)
	}
	return "nil"
}

// Programs that end as in redis-server: results, and the words of errors.
func TestLibraryProgramsAreRedis(t *testing.T) {
	eval := redisEval(t)
	for _, program := range []string{
		`return tostring((select(2, pcall(table.insert, {}, 1, 2, 3))))`,
		`return tostring((select(2, pcall(table.insert, {}))))`,
		`return tostring((select(2, pcall(table.insert, {}, 'x', 2))))`,
		`return tostring((select(2, pcall(table.insert))))`,
		`return tostring((select(2, pcall(table.setn, {}, 2))))`,
		`return tostring((select(2, pcall(table.getn, {1,2}))))`,
		`return tostring((select(2, pcall(table.concat, {1,{},3}))))`,
		`return tostring((select(2, pcall(table.concat, {1,2,3}, ',', 2, 5))))`,
		`return tostring((select(2, pcall(table.sort, {3,1,'x'}))))`,
		`return tostring((select(2, pcall(table.sort, {3,1,2}, 5))))`,
		`return tostring((select(2, pcall(function() table.sort({3,1,{}}) end))))`,
		`return tostring((select(2, pcall(function() table.sort({{},{}}) end))))`,
		`return tostring((select(2, pcall(function() table.sort({1,2,3}, function(a,b) return true end) end))))`,
		`return tostring((select(2, pcall(table.foreach, {1,2}, 5))))`,
		`return tostring(table.foreachi({1,2}, function(i,v) return v end))`,
		`return tostring((select(2, pcall(table.maxn, 5))))`,
		`return tostring((select(2, pcall(math.random, 0))))`,
		`return tostring((select(2, pcall(math.random, 5,1))))`,
		`return tostring((select(2, pcall(math.random, 1,2,3))))`,
		`return tostring((select(2, pcall(math.max))))`,
		`return tostring((select(2, pcall(function() local x = math.floor('x') end))))`,
		`return tostring(table.maxn({1,2,[7.5]=1,[1e10]=2}))`,
		`return table.concat({1,2.5,'x',1e20,-0.1}, 1, 2, '4')`,
		`return tostring((select(2, pcall(function() return table.foreach({a=1,b=2,c=3}, function(k) t=0 end) end))))`,
		`local t = {10,20,30,nil,50} return #t .. ' ' .. table.maxn(t)`,
		`local t={} for i=1,3 do table.insert(t,1,i) end return table.concat(t,',')`,
		`return tostring((select(2, pcall(function() local t = setmetatable({},{__lt=1}) table.sort({t,t,t}) end))))`,
		`local mt={__lt=function(a,b) return a.v<b.v end} local t={} for i=1,20 do t[i]=setmetatable({v=(i*7)%11},mt) end table.sort(t) local r={} for ` +
			`i=1,20 do r[i]=t[i].v end return table.concat(r,',')`,
		`local t={5,3,2} return tostring((table.sort(t))) .. t[1]`,
		`return tostring((select(2, pcall(function() local t={3,2,1,5,4} table.sort(t, function(a,b) error('boom') end) end))))`,
		`return tostring((select(2, pcall(function() local t={3,2,1,5,4} table.sort(t, function(a,b) coroutine.yield() end) end))))`,
		`return tostring((select(2, pcall(next,{},'x'))))`,
		`local t = {a=1,b=2,c=3} local ok,e = pcall(table.foreach, t, function(k) t[k]=nil for i=1,50 do t[i..'x']=1 end end) return tostring(e)`,
		`return tostring(2^0.5)..' '..2^10 ..' '..tostring(-8^(1/3))..' '..tostring((-8)^(1/3))`,
	} {
		program = "local t " + program
		want := eval(program)
		s := New()
		s.OpenLibs()
		f, err := s.Load(program, "@user_script")
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Main().Call1(ClosureValue(f))
		if err != nil {
			t.Errorf("%s: %v", program, err)
			continue
		}
		if got, _ := v.AsString(); got != want {
			t.Errorf("%s\nours  %s\nredis %s", program, got, want)
		}
	}
}
