package lua

import "strconv"

// parser compiles a chunk while it reads it, without a syntax tree. Each statement and
// expression appends its code to the function that contains it.
type parser struct {
	lexer
	fn     *function
	active []variable // the declared locals of fn and of its enclosing functions
	level  int        // of nesting of blocks and expressions
}

// main parses a chunk, which is a function with the parameter "...".
func (c *parser) main() *Prototype {
	f := c.openFunction(0)
	f.Vararg = true
	c.next()
	c.statements()
	c.check(tokenEOF)
	return c.closeFunction()
}

// Tokens.

// accept skips the current token if it is of this kind.
func (c *parser) accept(kind tokenKind) bool {
	if c.current.kind != kind {
		return false
	}
	c.next()
	return true
}

func (c *parser) check(kind tokenKind) {
	if c.current.kind != kind {
		c.failHere("'" + kind.String() + "' expected")
	}
}

func (c *parser) expect(kind tokenKind) {
	c.check(kind)
	c.next()
}

// expectClosing expects the token that closes the token opening, which stands on the given
// line.
func (c *parser) expectClosing(kind, opening tokenKind, line int) {
	if c.current.kind != kind && line != c.line {
		c.failHere("'" + kind.String() + "' expected (to close '" + opening.String() + "' at line " + strconv.Itoa(line) + ")")
	}
	c.expect(kind)
}

func (c *parser) expectName() *text {
	c.check(tokenName)
	t := c.current.text
	c.next()
	return t
}

// enterLevel limits the nesting of the chunk, and so the recursion of the parser.
func (c *parser) enterLevel() {
	if c.level++; c.level > maxLevels {
		c.fail("chunk has too many syntax levels")
	}
}

func (c *parser) leaveLevel() { c.level-- }

// Expressions.

// expressions parses a list. It returns the number of expressions and the last one; the
// others are in registers.
func (c *parser) expressions() (n int, last expr) {
	last = c.expression()
	for n = 1; c.accept(','); n++ {
		c.fn.toNext(&last)
		last = c.expression()
	}
	return n, last
}

func (c *parser) expression() (e expr) {
	c.operation(&e, 0)
	return e
}

// priorities holds the left and the right priority of each operator. They differ for ".."
// and "^", which associate to the right.
var priorities = [...]struct{ left, right int }{
	opAdd: {6, 6}, opSub: {6, 6}, opMul: {7, 7}, opDiv: {7, 7}, opMod: {7, 7}, opPow: {10, 9},
	opConcat:   {5, 4},
	opNotEqual: {3, 3}, opEqual: {3, 3}, opLess: {3, 3}, opLessEqual: {3, 3}, opGreater: {3, 3}, opGreaterEqual: {3, 3},
	opAnd: {2, 2}, opOr: {1, 1},
	opNone: {0, 0},
}

const unaryPriority = 8

// operator returns the binary operator of a token, or opNone.
func (k tokenKind) operator() operator {
	switch k {
	case '+':
		return opAdd
	case '-':
		return opSub
	case '*':
		return opMul
	case '/':
		return opDiv
	case '%':
		return opMod
	case '^':
		return opPow
	case tokenConcat:
		return opConcat
	case tokenNotEqual:
		return opNotEqual
	case tokenEqual:
		return opEqual
	case '<':
		return opLess
	case tokenLessEqual:
		return opLessEqual
	case '>':
		return opGreater
	case tokenGreaterEqual:
		return opGreaterEqual
	case tokenAnd:
		return opAnd
	case tokenOr:
		return opOr
	}
	return opNone
}

// operation parses an expression of operators whose priority is above limit. It returns
// the operator after the expression.
func (c *parser) operation(e *expr, limit int) operator {
	c.enterLevel()
	switch c.current.kind {
	case tokenNot:
		c.unary(OpNot, e)
	case '-':
		c.unary(OpUnm, e)
	case '#':
		c.unary(OpLen, e)
	default:
		c.simple(e)
	}
	op := c.current.kind.operator()
	for priorities[op].left > limit {
		c.next()
		c.fn.infix(op, e)
		var right expr
		next := c.operation(&right, priorities[op].right)
		c.fn.postfix(op, e, &right)
		op = next
	}
	c.leaveLevel()
	return op
}

func (c *parser) unary(op Op, e *expr) {
	c.next()
	c.operation(e, unaryPriority)
	c.fn.prefix(op, e)
}

// simple parses an expression without operators.
func (c *parser) simple(e *expr) {
	f := c.fn
	switch c.current.kind {
	case tokenNumber:
		*e = expr{kind: exprNumber, number: c.current.number}
	case tokenString:
		*e = f.stringConstant(c.current.text)
	case tokenNil:
		e.kind = exprNil
	case tokenTrue:
		e.kind = exprTrue
	case tokenFalse:
		e.kind = exprFalse
	case tokenDots:
		if !f.Vararg {
			c.failHere("cannot use '...' outside a vararg function")
		}
		f.usesDots = true
		e.is(exprVararg, f.emit(OpVararg, 0, 1, 0, 0))
	case '{':
		*e = c.constructor()
		return
	case tokenFunction:
		c.next()
		*e = c.body(false, c.line)
		return
	default:
		*e = c.primary()
		return
	}
	c.next()
}

func (f *function) stringConstant(t *text) expr {
	return expr{kind: exprConstant, info: f.constant(t.value)}
}

// primary parses a variable, a call, or an expression in parentheses.
func (c *parser) primary() expr {
	f := c.fn
	var e expr
	switch line := c.line; c.current.kind {
	case tokenName:
		e = f.lookup(c.current.text)
		c.next()
	case '(':
		c.next()
		e = c.expression()
		c.expectClosing(')', '(', line)
		f.load(&e)
	default:
		c.failHere("unexpected symbol")
	}
	for {
		switch c.current.kind {
		case '.':
			c.field(&e)
		case '[':
			f.toAny(&e)
			key := c.bracketKey()
			f.index(&e, &key)
		case ':':
			c.next()
			key := f.stringConstant(c.expectName())
			f.self(&e, &key)
			c.call(&e)
		case '(', tokenString, '{':
			f.toNext(&e)
			c.call(&e)
		default:
			return e
		}
	}
}

// field parses ".name" or, in the name of a function, ":name".
func (c *parser) field(e *expr) {
	c.fn.toAny(e)
	c.next()
	key := c.fn.stringConstant(c.expectName())
	c.fn.index(e, &key)
}

// bracketKey parses "[expression]".
func (c *parser) bracketKey() expr {
	c.next()
	key := c.expression()
	c.fn.toValue(&key)
	c.expect(']')
	return key
}

// call parses the arguments of a call of e, which is in the last register.
func (c *parser) call(e *expr) {
	f := c.fn
	line := c.line
	var last expr
	switch c.current.kind {
	case '(':
		if line != c.lastLine {
			c.failHere("ambiguous syntax (function call x new statement)")
		}
		c.next()
		if c.current.kind != ')' {
			_, last = c.expressions()
			f.setAll(&last)
		}
		c.expectClosing(')', '(', line)
	case '{':
		last = c.constructor()
	case tokenString:
		last = f.stringConstant(c.current.text)
		c.next()
	default:
		c.failHere("function arguments expected")
	}
	base := e.info
	n := all
	if !last.isOpen() {
		if last.kind != exprVoid {
			f.toNext(&last)
		}
		n = f.free - (base + 1)
	}
	*e = expr{kind: exprCall, info: f.emit(OpCall, base, n+1, 2, 0)}
	f.setLine(line)
	f.free = base + 1 // the call removes the function and the arguments, and leaves one value
}

// setAll makes a call or "..." return all its values.
func (f *function) setAll(e *expr) {
	if e.isOpen() {
		f.setResults(e, all)
	}
}

// constructor parses a table constructor. It keeps items in registers until it has enough
// of them for a SETLIST.
func (c *parser) constructor() expr {
	f := c.fn
	line := c.line
	pc := f.emit(OpNewTable, 0, 0, 0, 0)
	table := expr{kind: exprPending, info: pc}
	f.toNext(&table)
	c.expect('{')
	var item expr // the last one, if it is not in a register yet
	items, fields, waiting := 0, 0, 0
	for c.current.kind != '}' {
		if item.kind != exprVoid {
			f.toNext(&item)
			item = expr{}
			if waiting == listBatch {
				f.setList(table.info, items, waiting)
				waiting = 0
			}
		}
		if c.current.kind == '[' || c.current.kind == tokenName && c.peek() == '=' {
			fields++
			f.limit(fields, maxItems, "items in a constructor")
			c.constructorField(table.info)
		} else {
			item = c.expression()
			items++
			f.limit(items, maxItems, "items in a constructor")
			waiting++
		}
		if !c.accept(',') && !c.accept(';') {
			break
		}
	}
	c.expectClosing('}', '{', line)
	switch {
	case waiting == 0:
	case item.isOpen():
		f.setResults(&item, all)
		f.setList(table.info, items, all)
		items-- // the compiler does not know the number of its values
	default:
		if item.kind != exprVoid {
			f.toNext(&item)
		}
		f.setList(table.info, items, waiting)
	}
	f.setSize(pc, items, fields)
	return table
}

// constructorField is "name = value" or "[key] = value".
func (c *parser) constructorField(table int) {
	f := c.fn
	free := f.free
	var key expr
	if c.current.kind == tokenName {
		key = f.stringConstant(c.expectName())
	} else {
		key = c.bracketKey()
	}
	c.expect('=')
	k := f.toOperand(&key)
	value := c.expression()
	f.setIndexed(table, k, f.toOperand(&value))
	f.free = free
}

// body parses a function, beginning at its parameters.
func (c *parser) body(method bool, line int) expr {
	f := c.openFunction(line)
	c.expect('(')
	if method {
		f.declare(c.intern("self"))
		f.activate(1)
	}
	c.parameters()
	c.expect(')')
	c.statements()
	f.Last = c.line
	c.expectClosing(tokenEnd, tokenFunction, line)
	p := c.closeFunction()
	outer := c.fn
	if len(outer.children) > maxD {
		c.fail("constant table overflow")
	}
	outer.children = append(outer.children, p)
	return expr{kind: exprPending, info: outer.emit(OpClosure, 0, 0, 0, len(outer.children)-1)}
}

// parameters declares the parameters of the current function. A function with "..." has a
// local "arg", as in Lua 5.0. It holds a table of the extra arguments if the function uses
// "arg" and not "..."; otherwise it is nil.
func (c *parser) parameters() {
	f := c.fn
	n := 0
	if c.current.kind != ')' {
		for more := true; more; more = !f.Vararg && c.accept(',') {
			switch c.current.kind {
			case tokenName:
				f.declare(c.expectName())
				n++
			case tokenDots:
				c.next()
				f.Vararg = true
				f.hidden = len(c.active)
				f.declare(c.intern("arg"))
				n++
			default:
				c.failHere("<name> or '...' expected")
			}
		}
	}
	f.activate(n)
	f.Params = f.active
	f.reserve(f.active)
	if f.Vararg {
		f.Params--
		f.clear(f.Params, 1)
		f.label() // the compiler must not merge another LOADNIL into it, see closeFunction
	}
}
