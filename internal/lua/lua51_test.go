package lua

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// evaluator is a program that evaluates each line of its input as an expression
// list and writes what pcall returns: for each value the first letters of its
// type and its text, after the length of it all.
const evaluator = `
for line in io.lines() do
	local f, message = loadstring("return " .. line)
	local function text(n, ...)
		local out = {}
		for i = 1, n do
			local v = (select(i, ...))
			out[i] = type(v):sub(1, 3) .. " " .. tostring(v)
		end
		return table.concat(out, "|")
	end
	local function count(...) return select("#", ...), ... end
	local out = f and text(count(pcall(f))) or message
	io.write(#out, "\n", out)
end
`

// lua51 returns what lua5.1 makes of expressions, each as evaluator says.
func lua51(t testing.TB, expressions []string) []string {
	t.Helper()
	path := realserver.Program(t, "lua5.1")
	cmd := exec.Command(path, "-e", evaluator)
	cmd.Stdin = strings.NewReader(strings.Join(expressions, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lua5.1: %v", err)
	}
	r := bufio.NewReader(bytes.NewReader(out))
	results := make([]string, 0, len(expressions))
	for range expressions {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("lua5.1 answered %d of %d expressions", len(results), len(expressions))
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
		results = append(results, string(b))
	}
	return results
}

// quote writes a string as a program of Lua does, on one line.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%03d", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoteNumber writes a number as an expression whose value is exactly it.
func quoteNumber(f float64) string {
	switch s := FormatNumber(f); s {
	case "inf":
		return "1/0"
	case "-inf":
		return "-1/0"
	case "-nan":
		return "0/0"
	case "nan":
		return "-(0/0)"
	case "-0":
		return `tonumber("-0")` // -0 may become the same constant as a 0 near by
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
