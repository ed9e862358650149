package routing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/resp"
)

var three = []string{"a:1", "b:1", "c:1"}

// numbers reply with some numbers, one master each.
func numbers(n ...int64) RunOn {
	return func(at int, _ string) (resp.Value, error) { return resp.Value{Kind: resp.KindInt, Int: n[at]}, nil }
}

func TestRepliesOfAllMastersBecomeOne(t *testing.T) {
	if v, err := FanOutOf("DBSIZE", "")(three, numbers(1, 2, 4)); v.Int != 7 || err != nil {
		t.Errorf("DBSIZE: %v, %v", v, err)
	}
	if v, err := FanOutOf("config", "SET")(three, numbers(1, 2, 4)); v.Int != 4 || err != nil {
		t.Errorf("CONFIG SET: %v, %v", v, err)
	}
	nulls := func(at int, _ string) (resp.Value, error) {
		if at == 1 {
			return resp.Value{Kind: resp.KindBulk, Str: "k"}, nil
		}
		return resp.Value{Kind: resp.KindNull}, nil
	}
	if v, err := FanOutOf("RANDOMKEY", "")(three, nulls); v.Str != "k" || err != nil {
		t.Errorf("RANDOMKEY: %v, %v", v, err)
	}
	for _, line := range []string{"GET k", "CONFIG GET", "SCRIPT EXISTS", "FUNCTION LIST"} {
		name, second, _ := strings.Cut(line, " ")
		if FanOutOf(name, second) != nil {
			t.Errorf("%s goes everywhere", line)
		}
	}
}

func TestAMasterThatFailsIsNamed(t *testing.T) {
	broken := errors.New("broken")
	asked := 0
	_, err := FanOutOf("FLUSHALL", "")(three, func(at int, _ string) (resp.Value, error) {
		asked++
		if at == 1 {
			return resp.Value{}, broken
		}
		return resp.Value{}, nil
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "b:1: ") || asked != 2 {
		t.Errorf("%v, after %d", err, asked)
	}
}

func TestScanGoesFromMasterToMaster(t *testing.T) {
	var asked []string
	page := func(next string) RunOn {
		return func(at int, cursor string) (resp.Value, error) {
			asked = append(asked, fmt.Sprint(at, " ", cursor))
			return scanReply(next, nil), nil
		}
	}
	for _, s := range []struct{ cursor, reply, want, ask string }{
		{"0", "17", "a:1/17", "0 0"},
		{"a:1/17", "0", "b:1/0", "0 17"},
		{"b:1/0", "3", "b:1/3", "1 0"},
		{"bb:1/3", "0", "0", "2 0"}, // a master that is no longer one
		{"c:1/9", "0", "0", "2 9"},
		{"d:1/9", "", "0", ""},
	} {
		asked = nil
		v, err := FanOutOf("SCAN", s.cursor)(three, page(s.reply))
		if err != nil || v.Elems[0].Str != s.want || strings.Join(asked, ", ") != s.ask {
			t.Errorf("SCAN %s asks %q and returns %v, %v; want %+v", s.cursor, asked, v, err, s)
		}
	}
	if v, err := FanOutOf("SCAN", "nowhere")(three, page("0")); v.Err() == nil || err != nil {
		t.Errorf("a wrong cursor: %v, %v", v, err)
	}
}
