package lua

// atBlockEnd reports whether the current token ends a block.
func (c *parser) atBlockEnd() bool {
	switch c.current.kind {
	case tokenElse, tokenElseif, tokenEnd, tokenUntil, tokenEOF:
		return true
	}
	return false
}

// statements parses the statements of a block.
func (c *parser) statements() {
	c.enterLevel()
	for last := false; !last && !c.atBlockEnd(); {
		last = c.statement()
		c.accept(';')
		c.fn.free = c.fn.active
	}
	c.leaveLevel()
}

// block parses a block with its own scope.
func (c *parser) block() {
	var b block
	c.fn.enter(&b)
	c.statements()
	c.fn.leave()
}

// statement parses a statement, and reports whether it must be the last of its block.
func (c *parser) statement() bool {
	line := c.line
	switch c.current.kind {
	case tokenIf:
		c.ifStatement(line)
	case tokenWhile:
		c.whileStatement(line)
	case tokenDo:
		c.next()
		c.block()
		c.expectClosing(tokenEnd, tokenDo, line)
	case tokenFor:
		c.forStatement(line)
	case tokenRepeat:
		c.repeatStatement(line)
	case tokenFunction:
		c.functionStatement(line)
	case tokenLocal:
		c.next()
		if c.accept(tokenFunction) {
			c.localFunction()
		} else {
			c.localStatement()
		}
	case tokenReturn:
		c.returnStatement()
		return true
	case tokenBreak:
		c.next()
		c.breakStatement()
		return true
	default:
		c.expressionStatement()
	}
	return false
}

// condition parses an expression, and returns the jumps that the program takes if it is
// false.
func (c *parser) condition() jumps {
	e := c.expression()
	if e.kind == exprNil {
		e.kind = exprFalse
	}
	c.fn.goIfTrue(&e)
	return e.whenFalse
}

func (c *parser) ifStatement(line int) {
	f := c.fn
	var end jumps
	otherwise := c.thenBlock()
	for c.current.kind == tokenElseif {
		f.add(&end, f.jump())
		f.patchHere(otherwise)
		otherwise = c.thenBlock()
	}
	if c.current.kind == tokenElse {
		f.add(&end, f.jump())
		f.patchHere(otherwise)
		c.next()
		c.block()
	} else {
		f.add(&end, otherwise)
	}
	f.patchHere(end)
	c.expectClosing(tokenEnd, tokenIf, line)
}

// thenBlock parses from "if" or "elseif" to the block's end. It returns the jumps that the
// program takes if the condition is false.
func (c *parser) thenBlock() jumps {
	c.next()
	l := c.condition()
	c.expect(tokenThen)
	c.block()
	return l
}

func (c *parser) whileStatement(line int) {
	f := c.fn
	c.next()
	begin := f.label()
	exit := c.condition()
	b := block{loop: true}
	f.enter(&b)
	c.expect(tokenDo)
	c.block()
	f.patchTo(f.jump(), begin)
	c.expectClosing(tokenEnd, tokenWhile, line)
	f.leave()
	f.patchHere(exit)
}

func (c *parser) repeatStatement(line int) {
	f := c.fn
	begin := f.label()
	loop, scope := block{loop: true}, block{}
	f.enter(&loop)
	f.enter(&scope)
	c.next()
	c.statements()
	c.expectClosing(tokenUntil, tokenRepeat, line)
	again := c.condition() // inside the scope of the block's locals
	if !scope.captured {
		f.leave()
		f.patchTo(again, begin)
	} else {
		// The upvalues must be closed on both ways out of the block.
		c.breakStatement()
		f.patchHere(again)
		f.leave()
		f.patchTo(f.jump(), begin)
	}
	f.leave()
}

func (c *parser) breakStatement() {
	f := c.fn
	b, captured := f.block, false
	for ; b != nil && !b.loop; b = b.outer {
		captured = captured || b.captured
	}
	if b == nil {
		c.failHere("no loop to break")
	}
	if captured {
		f.emit(OpClose, b.active, 0, 0, 0)
	}
	f.add(&b.breaks, f.jump())
}

// These names of locals hold the state of loops. Messages show them; a program cannot use
// them, because they are not identifiers.
var (
	numericForState = [...]string{"(for index)", "(for limit)", "(for step)"}
	genericForState = [...]string{"(for generator)", "(for state)", "(for control)"}
)

func (c *parser) forStatement(line int) {
	var b block
	b.loop = true
	c.fn.enter(&b)
	c.next()
	name := c.expectName()
	switch c.current.kind {
	case '=':
		c.numericFor(name, line)
	case ',', tokenIn:
		c.genericFor(name)
	default:
		c.failHere("'=' or 'in' expected")
	}
	c.expectClosing(tokenEnd, tokenFor, line)
	c.fn.leave()
}

func (c *parser) numericFor(name *text, line int) {
	f := c.fn
	base := f.free
	for _, s := range numericForState {
		f.declare(c.intern(s))
	}
	f.declare(name)
	c.expect('=')
	c.value()
	c.expect(',')
	c.value()
	if c.accept(',') {
		c.value()
	} else {
		f.emit(OpLoadK, f.free, 0, 0, f.constant(Number(1)))
		f.reserve(1)
	}
	c.forBody(base, line, 1, true)
}

// value puts an expression into the next register.
func (c *parser) value() {
	e := c.expression()
	c.fn.toNext(&e)
}

func (c *parser) genericFor(name *text) {
	f := c.fn
	base := f.free
	for _, s := range genericForState {
		f.declare(c.intern(s))
	}
	f.declare(name)
	n := 1
	for ; c.accept(','); n++ {
		f.declare(c.expectName())
	}
	c.expect(tokenIn)
	line := c.line
	values, last := c.expressions()
	f.adjust(3, values, &last)
	f.reach(3) // for the call of the generator
	c.forBody(base, line, n, false)
}

// forBody parses a loop, beginning at "do". The loop has n variables, after the three that
// hold its state.
func (c *parser) forBody(base, line, n int, numeric bool) {
	f := c.fn
	f.activate(3)
	c.expect(tokenDo)
	var prepare jumps
	if numeric {
		prepare = one(f.emit(OpForPrep, base, 0, 0, noJump))
	} else {
		prepare = f.jump()
	}
	begin := len(f.code)
	var b block
	f.enter(&b)
	f.activate(n)
	f.reserve(n)
	c.block()
	f.leave()
	f.patchHere(prepare)
	var loop int
	if numeric {
		loop = f.emit(OpForLoop, base, 0, 0, noJump)
	} else {
		loop = f.emit(OpTForLoop, base, 0, n, noJump)
	}
	f.setLine(line) // as if the loop began here
	f.patchTo(one(loop), begin)
}

func (c *parser) functionStatement(line int) {
	f := c.fn
	c.next()
	name := f.lookup(c.expectName())
	method := false
	for !method && (c.current.kind == '.' || c.current.kind == ':') {
		method = c.current.kind == ':'
		c.field(&name)
	}
	body := c.body(method, line)
	f.store(&name, &body)
	f.setLine(line) // as if it were defined where it begins
}

func (c *parser) localFunction() {
	f := c.fn
	f.declare(c.expectName())
	name := expr{kind: exprLocal, info: f.reserve(1)}
	f.activate(1)
	body := c.body(false, c.line)
	f.store(&name, &body)
	// From here on messages can name the variable.
	f.locals[len(f.locals)-1].begin = len(f.code)
}

func (c *parser) localStatement() {
	f := c.fn
	n := 0
	for more := true; more; more = c.accept(',') {
		f.declare(c.expectName())
		n++
	}
	values := 0
	var last expr
	if c.accept('=') {
		values, last = c.expressions()
	}
	f.adjust(n, values, &last)
	f.activate(n)
}

// adjust turns a list of values, of which the last is still an expression, into n values
// in registers. It leaves extra values in their registers.
func (f *function) adjust(n, values int, last *expr) {
	missing := n - values
	if last.isOpen() {
		missing = max(missing+1, 0)
		f.setResults(last, missing)
		if missing > 1 {
			f.reserve(missing - 1)
		}
		return
	}
	if last.kind != exprVoid {
		f.toNext(last)
	}
	if missing > 0 {
		f.clear(f.reserve(missing), missing)
	}
}

func (c *parser) returnStatement() {
	f := c.fn
	c.next()
	if c.atBlockEnd() || c.current.kind == ';' {
		f.ret(0, 0)
		return
	}
	n, last := c.expressions()
	switch {
	case last.isOpen():
		f.setResults(&last, all)
		if last.kind == exprCall && n == 1 {
			f.code[last.info] = f.code[last.info]&^0xff | Instruction(OpTailCall)
		}
		f.ret(f.active, all)
	case n == 1:
		f.ret(f.toAny(&last), 1)
	default:
		f.toNext(&last)
		f.ret(f.active, n)
	}
}

// expressionStatement parses a call or an assignment.
func (c *parser) expressionStatement() {
	first := target{expr: c.primary()}
	if first.kind == exprCall {
		c.fn.setResults(&first.expr, 0)
		return
	}
	c.assignment(&first, 1)
}

// target is a variable on the left side of an assignment.
type target struct {
	expr
	before *target
}

// assignment parses the rest of an assignment, after its n-th variable.
func (c *parser) assignment(to *target, n int) {
	f := c.fn
	if to.kind < exprLocal || to.kind > exprIndexed {
		c.failHere("syntax error")
	}
	if c.accept(',') {
		next := target{expr: c.primary(), before: to}
		if next.kind == exprLocal {
			f.protect(to, next.info)
		}
		f.limit(n, maxLevels-c.level, "variables in assignment")
		c.assignment(&next, n+1)
	} else {
		c.expect('=')
		values, last := c.expressions()
		if values == n {
			f.setOneResult(&last)
			f.store(&to.expr, &last)
			return
		}
		f.adjust(n, values, &last)
		if values > n {
			f.free -= values - n
		}
	}
	f.store(&to.expr, &expr{kind: exprRegister, info: f.free - 1})
}

// protect copies a local on the left side of an assignment, if earlier variables of the
// same assignment use it as a table or a key.
func (f *function) protect(to *target, local int) {
	extra := f.free
	conflict := false
	for ; to != nil; to = to.before {
		if to.kind != exprIndexed {
			continue
		}
		if to.info == local {
			conflict = true
			to.info = extra
		}
		if to.aux == local {
			conflict = true
			to.aux = extra
		}
	}
	if conflict {
		f.emit(OpMove, extra, local, 0, 0)
		f.reserve(1)
	}
}
