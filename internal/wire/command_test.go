package wire

import "testing"

func TestAppendCommandEncodesARequest(t *testing.T) {
	const want = "*2\r\n$3\r\nGET\r\n$12\r\nkey:\r\n000000\r\n"
	if got := AppendCommand(nil, "GET", "key:\r\n000000"); string(got) != want {
		t.Errorf("%q", got)
	}
	if got := AppendCommand(nil, []byte("GET"), []byte("key:\r\n000000")); string(got) != want {
		t.Errorf("%q from bytes", got)
	}
}
