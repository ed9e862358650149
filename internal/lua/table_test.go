package lua

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// testTable is an empty table of a State of its own.
func testTable(items, fields int) *Table { return New().NewTable(items, fields) }

// check verifies what holds of every table between two operations.
func (t *Table) check(fatal func(format string, args ...any)) {
	nodes := t.hash()
	if len(nodes) > 0 && len(nodes)&(len(nodes)-1) != 0 || t.lastFree > uint32(len(nodes)) {
		fatal("%d nodes, last free %d", len(nodes), t.lastFree)
	}
	if noNode != (node{}) {
		fatal("the node of empty tables was written: %v", noNode)
	}
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.key.IsNil() && !(n.value.IsNil() && n.next == nil):
			fatal("node %d is free, but %v", i, n)
		case n.key.IsNil() && uint32(i) >= t.lastFree && t.mainPositions(n) > 0:
			fatal("node %d is free, but the main position of a key", i)
		case !n.value.IsNil() && t.find(n.key) != n:
			fatal("the key of node %d is not found", i)
		case !n.value.IsNil() && arrayIndex(n.key) > 0 && arrayIndex(n.key) <= len(t.array):
			fatal("key %v belongs in the array part", n.key)
		}
	}
}

// mainPositions returns the number of live keys that have n as their main position.
func (t *Table) mainPositions(n *node) (count int) {
	for _, other := range t.hash() {
		if !other.value.IsNil() && t.mainPosition(other.key) == n {
			count++
		}
	}
	return count
}

// A table beside a Go map: whatever is done to both, they hold the same, a
// traversal meets each entry once, even if it removes as it goes, and # is a
// border.
func TestTableIsAMap(t *testing.T) {
	objects := []Value{Null, True, False}
	for range 5 {
		objects = append(objects, TableValue(testTable(0, 0)), BuiltinValue(&Builtin{}))
	}
	draw.Check(t, func(t *rapid.T) {
		model := map[any]Value{}
		comparable := func(k Value) any {
			if f, ok := k.AsNumber(); ok {
				return f + 0 // -0 is 0
			}
			if s, ok := k.AsString(); ok {
				return s
			}
			return k
		}
		key := rapid.Custom(func(t *rapid.T) Value {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				return Int(rapid.IntRange(-3, 70).Draw(t, "int"))
			case 2:
				return Number(rapid.SampledFrom([]float64{0.5, math.Copysign(0, -1), math.Inf(1), 1 << 53, 1e300, 1 << 31,
					-1.5, 1 << 26}).Draw(t, "float"))
			case 3:
				return String(strings.Repeat("k", rapid.IntRange(0, 40).Draw(t, "length")))
			}
			return rapid.SampledFrom(objects).Draw(t, "object")
		})
		table := testTable(rapid.IntRange(0, 9).Draw(t, "items"), rapid.IntRange(0, 9).Draw(t, "fields"))
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), Int(rapid.IntRange(0, 99).Draw(t, "value"))
				model[comparable(k)] = v
				if err := table.Set(k, v); err != nil {
					t.Fatal(err)
				}
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				delete(model, comparable(k))
				if err := table.Set(k, Nil); err != nil {
					t.Fatal(err)
				}
			},
			"clearKey": func(*rapid.T) { table.references(func(Value) {}) },
			"traverse": func(t *rapid.T) {
				seen := map[any]bool{}
				for k, v, ok := table.Next(Nil); !k.IsNil(); k, v, ok = table.Next(k) {
					want, has := model[comparable(k)]
					if !ok || !has || seen[comparable(k)] || !Equal(v, want) {
						t.Fatalf("next: %v = %v, %v; the model has %v, %v", k, v, ok, want, has)
					}
					seen[comparable(k)] = true
					if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
						delete(model, comparable(k))
						delete(seen, comparable(k))
						if err := table.Set(k, Nil); err != nil {
							t.Fatal(err)
						}
						if rapid.Bool().Draw(t, "clearKey") {
							table.references(func(Value) {})
						}
					}
				}
				if len(seen) != len(model) {
					t.Fatalf("met %d entries of %d", len(seen), len(model))
				}
			},
			"": func(t *rapid.T) {
				table.check(t.Fatalf)
				k := key.Draw(t, "look")
				if want := model[comparable(k)]; !Equal(table.Get(k), want) {
					t.Fatalf("%v is %v, want %v", k, table.Get(k), want)
				}
				n := table.Len()
				if n > 0 && table.GetInt(n).IsNil() || !table.GetInt(n+1).IsNil() {
					t.Fatalf("# is %d, which is not a border", n)
				}
			},
		})
	})
}

// scriptedKeys are the keys of the differential test, and the text of a program
// that makes a list of them, K.
func scriptedKeys() (keys []Value, program string) {
	var b strings.Builder
	b.WriteString("local K = {}\n")
	add := func(v Value, text string) {
		keys = append(keys, v)
		fmt.Fprintf(&b, "K[#K+1] = %s\n", text)
	}
	for i := -4; i <= 70; i++ {
		add(Int(i), strconv.Itoa(i))
	}
	for i := 7; i <= 34; i++ {
		add(Int(1<<i), strconv.Itoa(1<<i))
	}
	for i := range 12 {
		f := (float64(i) - 6.5) * math.Pow(10, float64(i*3))
		add(Number(f), strconv.FormatFloat(f, 'g', 17, 64))
	}
	for i := range 40 {
		s := strings.Repeat("a", i*3) + strconv.Itoa(i*i) + strings.Repeat("b", i*2)
		add(String(s), strconv.Quote(s))
	}
	add(True, "true")
	add(False, "false")
	add(Null, "cjson.null")
	return keys, b.String()
}

// The program that runs operations on a table and says what it sees; runTable is
// the same in Go.
const tableProgram = `
collectgarbage("stop")
local R = {}
for i, k in ipairs(K) do R[k] = i - 1 end
local out = {}
for _, op in ipairs(ARGV) do
	local c, n = op:sub(1, 1), tonumber(op:sub(2))
	if c == "n" then t = loadstring("return {" .. op:sub(3) .. "}")()
	elseif c == "s" then t[K[n+1]] = n
	elseif c == "d" then t[K[n+1]] = nil
	elseif c == "g" then collectgarbage()
	elseif c == "#" then out[#out+1] = "#" .. #t
	else
		for k in pairs(t) do
			out[#out+1] = R[k]
			if c == "r" and R[k] % n == 0 then t[k] = nil end
		end
		out[#out+1] = ";"
	end
end
collectgarbage("restart")
return table.concat(out, " ")
`

// runTable runs the operations: "n" and a list makes a new table by a constructor with
// that list, "s" and "d" set and remove a key, "g"
// collects, "#" is the length, "p" a traversal, "r" one that removes every nth.
func runTable(t *testing.T, keys []Value, ops []string) string {
	index := func(k Value) int {
		return slices.IndexFunc(keys, func(other Value) bool { return Equal(other, k) })
	}
	var table *Table
	var out []string
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range ops {
		n, _ := strconv.Atoi(op[1:])
		switch op[0] {
		case 'n':
			items := make([]Value, strings.Count(op, "true"))
			fields := strings.Count(op, "=7")
			table = testTable(constructorSize(len(items)), constructorSize(fields))
			for i := range items {
				items[i] = True
			}
			for i := range fields {
				must(table.Set(Int(i+60), Int(7)))
			}
			must(table.setList(0, items))
		case 's':
			must(table.Set(keys[n], Int(n)))
		case 'd':
			must(table.Set(keys[n], Nil))
		case 'g':
			table.references(func(Value) {})
		case '#':
			out = append(out, "#"+strconv.Itoa(table.Len()))
		default:
			for k, _, ok := table.Next(Nil); !k.IsNil(); k, _, ok = table.Next(k) {
				if !ok {
					t.Fatalf("next lost its place at %v", k)
				}
				i := index(k)
				out = append(out, strconv.Itoa(i))
				if op[0] == 'r' && i%n == 0 {
					must(table.Set(k, Nil))
				}
			}
			out = append(out, ";")
		}
	}
	return strings.Join(out, " ")
}

// randomTableOps makes a sequence of operations on n keys.
func randomTableOps(rng *rand.Rand, n int) []string {
	var constructor []string
	for range rng.IntN(3) * rng.IntN(16) {
		constructor = append(constructor, "true")
	}
	for i := range rng.IntN(2) * rng.IntN(10) {
		constructor = append(constructor, fmt.Sprintf("[%d]=7", i+60))
	}
	ops := []string{"n " + strings.Join(constructor, ",")}
	first, count := rng.IntN(n), 1+rng.IntN(n)
	pick := func() int { return (first + rng.IntN(count)) % n }
	removes := 1 + rng.IntN(10)
	for range rng.IntN(120) {
		switch r := rng.IntN(24); {
		case r == 0:
			ops = append(ops, "g")
		case r == 1:
			ops = append(ops, "#")
		case r == 2:
			ops = append(ops, "p")
		case r == 3:
			ops = append(ops, "r"+strconv.Itoa(1+rng.IntN(4)))
		case r < 3+removes:
			ops = append(ops, "d"+strconv.Itoa(pick()))
		default:
			ops = append(ops, "s"+strconv.Itoa(pick()))
		}
	}
	return append(ops, "#", "p")
}

// redisEval returns a function that runs a program in redis-server.
func redisEval(t *testing.T) func(program string, args ...string) string {
	return evalAt(t, "redis-server")
}

// evalAt runs scripts on a server of package realserver.
func evalAt(t *testing.T, server string) func(program string, args ...string) string {
	conn, err := net.Dial("tcp", realserver.Start(t, server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := bufio.NewReader(conn)
	return func(program string, args ...string) string {
		t.Helper()
		if _, err := conn.Write(wire.AppendCommand(nil, append([]string{"EVAL", program, "0"}, args...)...)); err != nil {
			t.Fatal(err)
		}
		v, err := wire.ReadValue(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Err(); err != nil {
			t.Fatalf("%v\n%s", err, program)
		}
		return v.Str
	}
}

// Scripts see the order of pairs and the borders that # finds: both are
// redis-server's, whatever has been done to the table.
func TestTableOrderIsRedis(t *testing.T) {
	eval := redisEval(t)
	keys, program := scriptedKeys()
	program += "local t\n" + tableProgram
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		ops := randomTableOps(rng, len(keys))
		want := eval(program, ops...)
		if got := runTable(t, keys, ops); got != want {
			t.Fatalf("%q\n ours  %s\n redis %s", ops, got, want)
		}
	}
}
