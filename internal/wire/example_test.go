package wire_test

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
)

// A client writes commands, and reads replies.
func Example() {
	fmt.Printf("%q\n", wire.AppendCommand(nil, "SET", "k", "v"))

	r := bufio.NewReader(strings.NewReader("+OK\r\n*2\r\n:7\r\n$3\r\nann\r\n"))
	for range 2 {
		v, err := wire.ReadValue(r)
		fmt.Println(v, err)
	}
	// Output:
	// "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
	// OK <nil>
	// [7,"ann"] <nil>
}
