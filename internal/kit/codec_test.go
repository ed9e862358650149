package kit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
)

type (
	deep  struct{ In struct{ C chan int } }
	later struct {
		Hooks []func()
		Next  *later
		C     chan int `json:",omitzero"`
		D     func()   `json:"-"`
		_     chan int
	}
	tree  []tree
	badly map[float64]int
	self  struct{ C chan int }
)

func (self) MarshalText() ([]byte, error) { return nil, nil }

// codecError returns the error of Codec for a type, after a check that JSON agrees.
func codecError[T any](t *testing.T) string {
	t.Helper()
	var zero T
	_, refuses := json.Marshal(zero)
	_, err := Codec[T](nil, "Codec")
	if err == nil {
		if refuses != nil {
			t.Errorf("%T: Codec accepts it, and JSON says %v", zero, refuses)
		}
		return ""
	}
	if !errors.Is(err, conn.ErrArgument) {
		t.Errorf("%T: %v is not ErrArgument", zero, err)
	}
	return err.Error()
}

func TestTheDefaultCodecRefusesTypesThatJSONCannotEncode(t *testing.T) {
	for got, want := range map[string]string{
		codecError[chan int](t):            "JSON cannot encode chan int: a chan has no JSON; use another type, or set Codec",
		codecError[func()](t):              "a func has no JSON",
		codecError[complex128](t):          "a complex128 has no JSON",
		codecError[deep](t):                "field In: field C: a chan has no JSON",
		codecError[[2]chan int](t):         "a chan has no JSON",
		codecError[[]func(int)](t):         "JSON cannot encode []func(int): a func",
		codecError[*deep](t):               "JSON cannot encode *kit.deep: field In",
		codecError[map[string]chan int](t): "JSON cannot encode map[string]chan int",
		codecError[badly](t):               "a key of type float64 has no JSON",
	} {
		if got == "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, got := range []string{
		codecError[string](t), codecError[[]byte](t), codecError[int](t), codecError[time.Time](t), codecError[any](t),
		codecError[later](t), codecError[*later](t), codecError[tree](t), codecError[self](t), codecError[map[int]later](t), codecError[error](t),
	} {
		if got != "" {
			t.Error(got)
		}
	}
}
