package queue

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
)

// A payload is the encoded value. If the job has headers, a Timeout or a history, an
// envelope is in front:
//
//	0x00 "ebbq" 0x01   length of the JSON (uvarint)   JSON   the codec's bytes
//
// Programs that read the queue without this package see the envelope. A payload that begins like
// an envelope by chance gets an empty one in front.

const envelopeMark = "\x00ebbq\x01"

// maxHeaders is the limit of the envelope in bytes: larger data belongs in the payload.
const maxHeaders = 64 << 10

// envelope is the data of a job besides its value.
type envelope struct {
	Headers map[string]string `json:"h,omitempty"`
	Timeout int64             `json:"t,omitempty"` // ms
	// Before counts deliveries that the backend no longer counts, see Postpone.
	Before int64 `json:"n,omitempty"`
}

func (e *envelope) empty() bool { return len(e.Headers) == 0 && e.Timeout == 0 && e.Before == 0 }

// wrap puts the envelope in front of a value, if it needs one.
func (e *envelope) wrap(value []byte) ([]byte, error) {
	if e.empty() && !bytes.HasPrefix(value, []byte(envelopeMark)) {
		return value, nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeaders && e.Before == 0 { // an envelope with a count was checked before
		return nil, fmt.Errorf("%w: the headers have %d bytes; at most %d are allowed", conn.ErrArgument, len(text), maxHeaders)
	}
	b := make([]byte, 0, len(envelopeMark)+binary.MaxVarintLen32+len(text)+len(value))
	b = binary.AppendUvarint(append(b, envelopeMark...), uint64(len(text)))
	return append(append(b, text...), value...), nil
}

// unwrap returns the envelope and the value of a payload. If the envelope is damaged, the whole payload is
// the value.
func unwrap(payload string) (e envelope, value []byte) {
	rest, ok := strings.CutPrefix(payload, envelopeMark)
	if !ok {
		return e, []byte(payload)
	}
	size, n := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
	if n <= 0 || size > uint64(len(rest)-n) { //nolint:gosec // n is at most len(rest)
		return e, []byte(payload)
	}
	end := n + int(size) //nolint:gosec // at most len(rest)
	if err := json.Unmarshal([]byte(rest[n:end]), &e); err != nil {
		return envelope{}, []byte(payload)
	}
	return e, []byte(rest[end:])
}

// luaUncounted removes the count of earlier deliveries from a payload: a job that an operator runs again starts from attempt 1. The count
// is the last field of the envelope.
const luaUncounted = `
local function uncounted(p)
  if string.sub(p, 1, 6) ~= '\0ebbq\1' then return p end
  local size, unit, at = 0, 1, 7
  while true do
    local b = string.byte(p, at)
    if not b or unit > 2^28 then return p end
    size, unit, at = size + b % 128 * unit, unit * 128, at + 1
    if b < 128 then break end
  end
  local text, rest = string.sub(p, at, at + size - 1), string.sub(p, at + size)
  local left = string.match(text, '^(.*),"n":%d+}$') or string.match(text, '^({)"n":%d+}$')
  if not left then return p end
  if left == '{' and string.sub(rest, 1, 6) ~= '\0ebbq\1' then return rest end
  left = left .. '}'
  local length, n = '', #left
  while n >= 128 do
    length, n = length .. string.char(n % 128 + 128), math.floor(n / 128)
  end
  return '\0ebbq\1' .. length .. string.char(n) .. left .. rest
end
`

// decodePayload decodes a payload.
func (q *Queue[T]) decodePayload(payload string) (v T, e envelope, err error) {
	e, value := unwrap(payload)
	v, err = q.o.Codec.Decode(value)
	return v, e, err
}

// timeout returns the timeout in the envelope, otherwise the one in the options; 0: none.
func (q *Queue[T]) timeout(e *envelope) time.Duration {
	if e.Timeout > 0 {
		return toDuration(e.Timeout)
	}
	return q.o.Timeout
}

// isText reports whether T is string.
func isText[T any]() bool {
	var v T
	_, is := any(v).(string)
	return is
}

// encode returns the bytes of a value. The default codec's bytes of a string are the string.
func (q *Queue[T]) encode(v T) (string, error) {
	if q.text {
		text, _ := any(v).(string)
		return text, nil
	}
	value, err := q.o.Codec.Encode(v)
	return direct.Text(value), err // the caller owns them
}

// encodePayload returns the payload of a job.
func (q *Queue[T]) encodePayload(it *Item[T], extra map[string]string) (string, error) {
	value, err := q.encode(it.Value)
	if err != nil {
		return "", err
	}
	if len(it.Headers) == 0 && len(extra) == 0 && it.Timeout == 0 && !strings.HasPrefix(value, envelopeMark) {
		return value, nil // without an allocation
	}
	e := envelope{Headers: it.Headers, Timeout: kit.Millis(it.Timeout)}
	if len(extra) > 0 {
		e.Headers = extra
		for k, v := range it.Headers {
			e.Headers[k] = v
		}
	}
	for k, v := range e.Headers {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return "", fmt.Errorf("%w: the header %q is %q; both must be UTF-8", conn.ErrArgument, k, v)
		}
	}
	payload, err := e.wrap([]byte(value))
	return string(payload), err
}
