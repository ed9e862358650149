package oplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// request returns commands in RESP.
func request(commands ...string) []byte {
	var b []byte
	for _, c := range commands {
		words := strings.Fields(c)
		b = fmt.Appendf(b, "*%d\r\n", len(words))
		for _, w := range words {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return b
}

// read returns the commands of a file, each with the offset after it.
func read(r io.Reader) (commands []string, tail Tail, err error) {
	tail, err = ReadAOF(r, func(args [][]byte, end int64) error {
		commands = append(commands, fmt.Sprintf("%s@%d", bytes.Join(args, []byte(" ")), end))
		return nil
	})
	return commands, tail, err
}

func TestReadAOFVisitsCommandsInTheirOrder(t *testing.T) {
	big := strings.Repeat("x", 3*aofBuffer)
	file := request("SELECT 0", "SET a "+big, "MULTI", "SET b 1", "INCR b", "EXEC", "DEL a")
	file = append([]byte("#TS:1795340581\r\n"), file...)
	file = append(file, "#TS:1795340580\r\n#anything\r\n"...)
	for name, r := range map[string]io.Reader{
		"at once":         bytes.NewReader(file),
		"byte by byte":    iotest.OneByteReader(bytes.NewReader(file)),
		"EOF with a byte": iotest.DataErrReader(bytes.NewReader(file)),
	} {
		got, tail, err := read(r)
		if err != nil || len(got) != 7 || tail.Commands != 7 || tail.Good != int64(len(file)) || tail.Time != 1795340581 {
			t.Errorf("%s: %d commands, %+v, %v", name, len(got), tail, err)
		}
	}
}

func TestReadAOFStopsAtAnyByteOfATornEnd(t *testing.T) {
	head := append([]byte("#TS:1\r\n"), request("SELECT 0", "SET a 1")...)
	for name, last := range map[string][]byte{
		"a command":     request("SET key value"),
		"a transaction": request("MULTI", "SET key value", "SET key2 v", "EXEC"),
		"an annotation": []byte("#TS:17\r\n"),
	} {
		for n := range last {
			file := append(head[:len(head):len(head)], last[:n]...)
			for zeros := range 3 {
				file := append(file[:len(file):len(file)], make([]byte, zeros*40)...)
				got, tail, err := read(bytes.NewReader(file))
				if len(got) != 2 || tail.Good != int64(len(head)) {
					t.Fatalf("%s cut at %d: %q, %+v", name, n, got, tail)
				}
				if n == 0 && zeros == 0 {
					if err != nil {
						t.Fatalf("%s cut at 0: %v", name, err)
					}
					continue
				}
				var e *AOFError
				if !errors.As(err, &e) || !e.Truncated || e.Good != int64(len(head)) {
					t.Fatalf("%s cut at %d with %d zeros: %#v", name, n, zeros, err)
				}
			}
		}
	}
}

func TestReadAOFSaysWhereAFileIsWrong(t *testing.T) {
	good := string(request("SELECT 0"))
	for bad, at := range map[string]int{
		"+OK\r\n":                        0,
		"*0\r\n":                         1,
		"*-1\r\n":                        1,
		"*1\n$4\r\nPING\r\n":             2,
		"*1\r\n+PING\r\n":                4,
		"*1\r\n$4\r\nPINGPONG\r\n":       12,
		"*1\r\n$\r\nPING\r\n":            5,
		"*1\r\n$99999999999999999\r\n":   18,
		"\x00\x00\x00*1\r\n":             0,
		"#TS:soon\r\n":                   0,
		"*1\r\n$4\r\n\x00\x00\x00\x00xy": 12,
	} {
		_, tail, err := read(strings.NewReader(good + bad))
		var e *AOFError
		if !errors.As(err, &e) || e.Truncated || e.Good != int64(len(good)) || tail.Good != e.Good || e.Offset != int64(len(good)+at) {
			t.Errorf("%q: %#v", bad, err)
		}
	}
}

func TestReadAOFPassesOnErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, _, err := read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("of the reader: %v", err)
	}
	_, err := ReadAOF(bytes.NewReader(request("PING")), func([][]byte, int64) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("of visit: %v", err)
	}
}

func TestReadAOFAllocatesLittle(t *testing.T) {
	file := bytes.Repeat(request("SET key:1 value"), 10000)
	perRun := testing.AllocsPerRun(5, func() {
		_, err := ReadAOF(bytes.NewReader(file), func([][]byte, int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	})
	if perRun > 200 {
		t.Errorf("%.0f allocations for 10,000 commands", perRun)
	}
}

func FuzzReadAOF(f *testing.F) {
	f.Add(request("SELECT 0", "MULTI", "SET a 1", "EXEC"))
	f.Add([]byte("#TS:1\r\n*1\r\n$4\r\nPING\r\n\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, tail, err := read(bytes.NewReader(file))
		slow, slowTail, slowErr := read(iotest.OneByteReader(bytes.NewReader(file)))
		if fmt.Sprint(got, tail, err) != fmt.Sprint(slow, slowTail, slowErr) {
			t.Errorf("at once %q %+v %v, byte by byte %q %+v %v", got, tail, err, slow, slowTail, slowErr)
		}
		again, tail2, err := read(bytes.NewReader(file[:tail.Good]))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(got) || tail2.Good != tail.Good {
			t.Errorf("the good part is not: %v", err)
		}
	})
}
