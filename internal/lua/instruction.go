package lua

import "fmt"

// Instruction is one step of a compiled function. Registers are slots of the
// function's frame, R(0) to R(249); K are its constants, U its upvalues.
//
//	bits  0..7   op
//	bits  8..15  A
//	bits 16..27  B   a register, or 256 + the index of a constant ("RK")
//	bits 28..39  C   likewise
//	bits 40..63  D   signed: a jump, or the index of a constant or prototype
type Instruction uint64

const (
	// constantBit marks a constant in B and C.
	constantBit = 256
	// maxRK is the highest index of a constant that fits in B and C; others are
	// loaded into a register first.
	maxRK = 1<<12 - 1 - constantBit
	// maxRegisters is the size of the largest frame.
	maxRegisters = 250
	// maxD is the largest D.
	maxD = 1<<23 - 1
)

func (i Instruction) op() Op { return Op(i) }
func (i Instruction) a() int { return int(uint8(i >> 8)) }
func (i Instruction) b() int { return int(i >> 16 & 0xfff) }
func (i Instruction) c() int { return int(i >> 28 & 0xfff) }
func (i Instruction) d() int { return int(int64(i) >> 40) }

func encode(op Op, a, b, c, d int) Instruction {
	return Instruction(op) | Instruction(a&0xff)<<8 | Instruction(b&0xfff)<<16 | Instruction(c&0xfff)<<28 | Instruction(d)<<40
}

func (i Instruction) String() string {
	return fmt.Sprintf("%s A=%d B=%d C=%d D=%d", i.op(), i.a(), i.b(), i.c(), i.d())
}

// Op is an operation. In what follows, RK(x) is K(x-256) if x >= 256, R(x)
// otherwise; pc is the index of the instruction after this one. The operations
// are those of Lua 5.1, with two exceptions: a comparison holds its own jump, and
// some have faster forms for constants and small integers.
type Op uint8

const (
	OpMove     Op = iota // R(A) = R(B)
	OpLoadK              // R(A) = K(D)
	OpLoadBool           // R(A) = B != 0; if C != 0 pc++
	OpLoadNil            // R(A) ... R(B) = nil
	OpGetUpval           // R(A) = U(B)
	OpSetUpval           // U(B) = R(A)

	OpGetGlobal // R(A) = environment[K(D)], a string
	OpSetGlobal // environment[K(D)] = R(A)

	OpGetTable // R(A) = R(B)[RK(C)]
	OpGetField // R(A) = R(B)[K(C-256)], a string
	OpSetTable // R(A)[RK(B)] = RK(C)
	OpSetField // R(A)[K(B-256)] = RK(C), the key a string
	OpNewTable // R(A) = {} with room for D items, and for 1<<(C-1) fields if C != 0
	OpSelf     // R(A+1) = R(B); R(A) = R(B)[RK(C)]

	OpAdd    // R(A) = RK(B) + RK(C); likewise:
	OpSub    //
	OpMul    //
	OpDiv    //
	OpMod    //
	OpPow    //
	OpUnm    // R(A) = -R(B)
	OpNot    // R(A) = not R(B)
	OpLen    // R(A) = #R(B)
	OpConcat // R(A) = R(B) .. ... .. R(C)

	OpJmp // pc += D

	OpEq   // if (RK(B) == RK(C)) == (A != 0) pc += D
	OpLt   // if (RK(B) < RK(C)) == (A != 0) pc += D
	OpLe   // if (RK(B) <= RK(C)) == (A != 0) pc += D
	OpTest // if R(B) is true == (A != 0) pc += D
	// OpTestSet is for "and" and "or": if R(B) is true == (C != 0) then
	// R(A) = R(B) and pc += D.
	OpTestSet

	// OpCall calls R(A) with arguments R(A+1) ... R(A+B-1); B = 0: up to the
	// top that the instruction before has set. The results go to R(A) ...
	// R(A+C-2); C = 0: all of them, and the top is set after the last.
	OpCall
	OpTailCall // return R(A)(R(A+1) ... R(A+B-1)); B as in OpCall; an OpReturn of all results follows
	OpReturn   // return R(A) ... R(A+B-2); B = 0: up to the top

	OpForLoop // R(A) += R(A+2); if R(A) <= R(A+1) (>= for a negative step) { pc += D; R(A+3) = R(A) }
	OpForPrep // R(A) -= R(A+2); pc += D; the three must be numbers
	// OpTForLoop: R(A+3) ... R(A+2+C) = R(A)(R(A+1), R(A+2)); if R(A+3) is not
	// nil { R(A+2) = R(A+3); pc += D }: it stands at the end of the loop and
	// jumps back to the body.
	OpTForLoop

	// OpSetList: R(A)[C+i] = R(A+i) for 1 <= i <= B; B = 0: up to the top. D is
	// the index before the first, C unused: R(A)[D+i] = R(A+i).
	OpSetList
	OpClose   // closes the upvalues that are R(A) or above
	OpClosure // R(A) = a closure of P(D), with upvalues as its Upvalues say
	OpVararg  // R(A) ... R(A+B-2) = the extra arguments; B = 0: all, and the top is set

	OpLine // calls the State's line function; see Prototype.Traced

	numOps = int(OpLine) + 1
)

var opNames = [numOps]string{
	"MOVE", "LOADK", "LOADBOOL", "LOADNIL", "GETUPVAL", "SETUPVAL", "GETGLOBAL", "SETGLOBAL",
	"GETTABLE", "GETFIELD", "SETTABLE", "SETFIELD", "NEWTABLE", "SELF",
	"ADD", "SUB", "MUL", "DIV", "MOD", "POW", "UNM", "NOT", "LEN", "CONCAT", "JMP",
	"EQ", "LT", "LE", "TEST", "TESTSET", "CALL", "TAILCALL", "RETURN",
	"FORLOOP", "FORPREP", "TFORLOOP", "SETLIST", "CLOSE", "CLOSURE", "VARARG", "LINE",
}

func (o Op) String() string {
	if int(o) < numOps {
		return opNames[o]
	}
	return fmt.Sprintf("OP%d", uint8(o))
}

// Prototype is a compiled function: code without an environment. It does not
// change once compiled; any number of closures, of any number of States, share
// it.
type Prototype struct {
	Source     string // the chunk's name, as Load was given it, but not more of it than 129 bytes
	Line, Last int    // where the function begins and ends; 0 for a main chunk
	Params     int    // how many parameters it has, without "..."
	Vararg     bool   // it takes "..."
	// ArgTable: it has a local "arg", after the parameters, that holds the extra
	// arguments as a table (Lua 5.1's compatibility: a vararg function that
	// does not use "...").
	ArgTable  bool
	Registers int // how many registers its frame needs

	code      []Instruction
	constants []Value // strings are hashed
	children  []*Prototype
	upvalues  []upvalueSource
	lines     []int32 // the line of each instruction
	locals    []localVariable
	size      int // about how many bytes it takes, with its children
}

// Size returns about how many bytes the function takes, with those that it contains.
func (p *Prototype) Size() int { return p.size }

// upvalueSource says where a closure takes an upvalue from when it is made.
type upvalueSource struct {
	name  string
	local bool // a register of the enclosing function; else one of its upvalues
	index int
}

// localVariable is a local, for messages.
type localVariable struct {
	name       string
	register   int
	begin, end int // it is alive for begin <= pc < end
}
