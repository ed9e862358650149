package lua

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// loader is the program that lua5.1 runs: it compiles chunks, which come with their length
// before them, and answers each with "+" and the dump or "-" and the message.
const loader = `
while true do
	local n = io.read("*n")
	if not n then break end
	io.read(1)
	local chunk = n == 0 and "" or io.read(n)
	local f, message = loadstring(chunk)
	local answer = f and string.dump(f) or message
	io.write(f and "+" or "-", #answer, "\n", answer)
end
`

// compiled is lua5.1's result for a chunk: a dump, or a message.
type compiled struct {
	dump    []byte
	message string
}

// realCompile compiles chunks by lua5.1.
func realCompile(t testing.TB, chunks []string) []compiled {
	t.Helper()
	path := realserver.Program(t, "lua5.1")
	var in bytes.Buffer
	for _, c := range chunks {
		fmt.Fprintf(&in, "%d\n%s", len(c), c)
	}
	cmd := exec.Command(path, "-e", loader)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]compiled, len(chunks))
	for i := range answers {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		if !ok {
			t.Fatalf("lua5.1 answered %d of %d chunks", i, len(chunks))
		}
		n, err := strconv.Atoi(string(head[1:]))
		if err != nil {
			t.Fatal(err)
		}
		if head[0] == '+' {
			answers[i].dump = rest[:n]
		} else {
			answers[i].message = string(rest[:n])
		}
		out = rest[n:]
	}
	return answers
}

// undump reads what string.dump of lua5.1 on a 64-bit machine writes, in our
// instruction set.
func undump(dump []byte) *Prototype {
	r := dumpReader{dump[12:]}
	return r.function()
}

type dumpReader struct{ b []byte }

func (r *dumpReader) take(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
func (r *dumpReader) byte() int { return int(r.take(1)[0]) }
func (r *dumpReader) int() int  { return int(int32(binary.LittleEndian.Uint32(r.take(4)))) }
func (r *dumpReader) string() string {
	n := int(binary.LittleEndian.Uint64(r.take(8)))
	if n == 0 {
		return ""
	}
	return string(r.take(n)[:n-1])
}

// word is an instruction of Lua 5.1: 6 bits of operation, A in 8, C and B in 9.
type word uint32

func (w word) op() int  { return int(w & 63) }
func (w word) a() int   { return int(w >> 6 & 255) }
func (w word) c() int   { return int(w >> 14 & 511) }
func (w word) b() int   { return int(w >> 23) }
func (w word) bx() int  { return int(w >> 14) }
func (w word) sbx() int { return w.bx() - (1<<18-1)/2 }

// decodedSize decodes the sizes of a NEWTABLE.
func decodedSize(x int) int {
	if x < 8 {
		return x
	}
	return (x&7 + 8) << (x>>3 - 1)
}

func (r *dumpReader) function() *Prototype {
	p := &Prototype{}
	p.Source = r.string()
	p.Line, p.Last = r.int(), r.int()
	upvalues := r.byte()
	p.Params = r.byte()
	vararg := r.byte()
	hidden := vararg&1 != 0 // there is a local "arg"
	p.Vararg = vararg != 0
	p.Registers = r.byte()
	code := make([]word, r.int())
	for i := range code {
		code[i] = word(r.int())
	}
	for range r.int() {
		switch r.byte() {
		case 0:
			p.constants = append(p.constants, Nil)
		case 1:
			p.constants = append(p.constants, Bool(r.byte() != 0))
		case 3:
			p.constants = append(p.constants, Number(math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))))
		case 4:
			p.constants = append(p.constants, String(r.string()))
		}
	}
	for range r.int() {
		p.children = append(p.children, r.function())
	}
	lines := make([]int32, r.int())
	for i := range lines {
		lines[i] = int32(r.int())
	}
	at := r.translate(p, code, lines, hidden)
	for range r.int() {
		l := localVariable{name: r.string(), begin: at[r.int()], end: at[r.int()]}
		if len(p.locals) <= p.Params && (hidden || len(p.locals) < p.Params) {
			l.begin = 0
		}
		p.locals = append(p.locals, l)
	}
	for i := range r.int() {
		name := r.string()
		if i >= upvalues {
			panic("more names than upvalues")
		}
		p.upvalues = append(p.upvalues, upvalueSource{name: name})
	}
	return p
}

// translate makes our code of Lua's. It returns where each instruction went.
func (r *dumpReader) translate(p *Prototype, code []word, lines []int32, hidden bool) []int {
	at := make([]int, len(code)+1)
	targets := map[int]int{} // positions in the new code -> targets in the old one
	emit := func(pc int, i Instruction) {
		p.code = append(p.code, i)
		p.lines = append(p.lines, lines[pc])
	}
	if hidden {
		p.code, p.lines = append(p.code, encode(OpLoadNil, p.Params, p.Params, 0, 0)), append(p.lines, 0)
	}
	isField := func(key int) bool { return key >= 256 && p.constants[key-256].IsString() }
	for pc := 0; pc < len(code); pc++ {
		w := code[pc]
		at[pc] = len(p.code)
		a, b, c := w.a(), w.b(), w.c()
		jump := func(pc int) { targets[len(p.code)] = pc + 1 + code[pc].sbx() }
		switch w.op() {
		case 0:
			emit(pc, encode(OpMove, a, b, 0, 0))
		case 1:
			emit(pc, encode(OpLoadK, a, 0, 0, w.bx()))
		case 2:
			emit(pc, encode(OpLoadBool, a, b, c, 0))
		case 3:
			emit(pc, encode(OpLoadNil, a, b, 0, 0))
		case 4:
			emit(pc, encode(OpGetUpval, a, b, 0, 0))
		case 5:
			emit(pc, encode(OpGetGlobal, a, 0, 0, w.bx()))
		case 6:
			op := OpGetTable
			if isField(c) {
				op = OpGetField
			}
			emit(pc, encode(op, a, b, c, 0))
		case 7:
			emit(pc, encode(OpSetGlobal, a, 0, 0, w.bx()))
		case 8:
			emit(pc, encode(OpSetUpval, a, b, 0, 0))
		case 9:
			op := OpSetTable
			if isField(b) {
				op = OpSetField
			}
			emit(pc, encode(op, a, b, c, 0))
		case 10:
			fields := 0
			for n := decodedSize(c); n > 0 && 1<<fields>>1 < n; fields++ {
			}
			emit(pc, encode(OpNewTable, a, 0, fields, decodedSize(b)))
		case 11:
			emit(pc, encode(OpSelf, a, b, c, 0))
		case 12, 13, 14, 15, 16, 17:
			emit(pc, encode(OpAdd+Op(w.op()-12), a, b, c, 0))
		case 18, 19, 20:
			emit(pc, encode(OpUnm+Op(w.op()-18), a, b, 0, 0))
		case 21:
			emit(pc, encode(OpConcat, a, b, c, 0))
		case 22:
			jump(pc)
			emit(pc, encode(OpJmp, 0, 0, 0, 0))
		case 23, 24, 25:
			jump(pc + 1)
			emit(pc, encode(OpEq+Op(w.op()-23), a, b, c, 0))
			pc++
		case 26:
			jump(pc + 1)
			emit(pc, encode(OpTest, c, a, 0, 0))
			pc++
		case 27:
			jump(pc + 1)
			emit(pc, encode(OpTestSet, a, b, c, 0))
			pc++
		case 28:
			emit(pc, encode(OpCall, a, b, c, 0))
		case 29:
			emit(pc, encode(OpTailCall, a, b, c, 0))
		case 30:
			emit(pc, encode(OpReturn, a, b, 0, 0))
		case 31:
			jump(pc)
			emit(pc, encode(OpForLoop, a, 0, 0, 0))
		case 32:
			jump(pc)
			emit(pc, encode(OpForPrep, a, 0, 0, 0))
		case 33:
			jump(pc + 1)
			emit(pc, encode(OpTForLoop, a, 0, c, 0))
			pc++
		case 34:
			if c == 0 {
				c = int(code[pc+1])
				at[pc+1] = len(p.code)
			}
			emit(pc, encode(OpSetList, a, b, 0, (c-1)*50))
			if w.c() == 0 {
				pc++
			}
		case 35:
			emit(pc, encode(OpClose, a, 0, 0, 0))
		case 36:
			emit(pc, encode(OpClosure, a, 0, 0, w.bx()))
			child := p.children[w.bx()]
			for i := range child.upvalues {
				pc++
				child.upvalues[i].local = code[pc].op() == 0
				child.upvalues[i].index = code[pc].b()
				// The line of a function statement is set in the last of them.
				p.lines[len(p.lines)-1] = lines[pc]
			}
		case 37:
			emit(pc, encode(OpVararg, a, b, 0, 0))
		}
	}
	at[len(code)] = len(p.code)
	for from, to := range targets {
		p.code[from] |= Instruction(at[to]-(from+1)) << 40
	}
	return at
}

// forgetClearing removes what we do otherwise than Lua: the first instruction of
// a function that takes "...", and the LOADNIL at the beginning of a function that
// Lua spares, since its frames are clear.
func forgetClearing(p, real *Prototype) {
	first := 0
	if p.Vararg && p.Line != 0 {
		first = 1
		real.code[0], real.lines[0] = p.code[0], p.lines[0]
	}
	real.ArgTable = p.ArgTable
	if i := p.code[first]; i.op() == OpLoadNil && len(p.code) == len(real.code)+1 {
		p.code = append(p.code[:first:first], p.code[first+1:]...)
		p.lines = append(p.lines[:first:first], p.lines[first+1:]...)
		for i := range p.locals {
			p.locals[i].begin = max(p.locals[i].begin-1, 0)
			p.locals[i].end--
		}
	}
	for i := range p.locals {
		if p.locals[i].begin <= first {
			p.locals[i].begin = 0
		}
		if i < len(real.locals) && real.locals[i].begin <= first {
			real.locals[i].begin = 0
		}
	}
	for i := range min(len(p.children), len(real.children)) {
		forgetClearing(p.children[i], real.children[i])
	}
}

// describeAll is a prototype's code and all that messages know about it.
func describeAll(p *Prototype) string {
	var b strings.Builder
	b.WriteString(disassemble(p))
	var walk func(p *Prototype)
	walk = func(p *Prototype) {
		fmt.Fprintf(&b, "lines %d to %d\n", p.Line, p.Last)
		for _, l := range p.locals {
			fmt.Fprintf(&b, "local %s %d %d\n", l.name, l.begin, l.end)
		}
		for _, child := range p.children {
			walk(child)
		}
	}
	walk(p)
	return b.String()
}

// compareWithReal compiles chunks here and by lua5.1 and compares everything.
func compareWithReal(t *testing.T, chunks []string) {
	t.Helper()
	for i, real := range realCompile(t, chunks) {
		if strings.Contains(real.message, "nesting of [[...]] is deprecated") {
			continue // redis-server, which we follow, allows it
		}
		p, err := Compile(chunks[i], chunks[i])
		if err != nil {
			if err.Error() != real.message {
				t.Errorf("%q:\n we: %s\nlua: %s", chunks[i], err, real.message)
			}
			continue
		}
		if real.dump == nil {
			t.Errorf("%q is accepted\nlua: %s", chunks[i], real.message)
			continue
		}
		q := undump(real.dump)
		forgetClearing(p, q)
		if we, they := describeAll(p), describeAll(q); we != they {
			t.Errorf("%q:\n%s", chunks[i], firstDifference(we, they))
		}
	}
}

// firstDifference shows where two texts part.
func firstDifference(we, they string) string {
	w, l := strings.Split(we, "\n"), strings.Split(they, "\n")
	for i := range w {
		if i >= len(l) || w[i] != l[i] {
			return fmt.Sprintf(" we: %s\nlua: %s", strings.Join(w[i:min(i+3, len(w))], "\n     "),
				strings.Join(l[min(i, len(l)):min(i+3, len(l))], "\n     "))
		}
	}
	return "lua's is longer"
}
