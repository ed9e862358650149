package loadgen

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
)

var errBadReply = errors.New("malformed reply")

// SkipReply reads one reply without keeping it. It returns the text of an
// error reply, "" for every other. Errors inside aggregates are not noticed.
func SkipReply(r *bufio.Reader) (msg string, err error) {
	for left := 1; left > 0; left-- {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		if len(line) < 3 {
			return "", errBadReply
		}
		body := line[1 : len(line)-2]
		switch line[0] {
		case '+', ':', ',', '#', '_', '(':
		case '-':
			if msg == "" {
				msg = string(body)
			}
		case '$', '=', '!':
			n, err := strconv.Atoi(string(body))
			if err != nil {
				return "", err
			}
			if n >= 0 {
				if _, err := r.Discard(n + 2); err != nil {
					return "", err
				}
			}
		case '*', '~', '>', '%', '|':
			n, err := strconv.Atoi(string(body))
			if err != nil {
				return "", err
			}
			if line[0] == '%' || line[0] == '|' {
				n *= 2
			}
			if line[0] == '|' || line[0] == '>' {
				n++ // what follows is still to come
			}
			left += max(n, 0)
		default:
			return "", fmt.Errorf("%w: type %q", errBadReply, line[0])
		}
	}
	return msg, nil
}
