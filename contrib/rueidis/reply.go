package rueidisebb

import (
	"sort"
	"strings"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/resp"
)

// value converts a result that has a reply. An error reply is a Value too.
func value(r rueidis.RedisResult) conn.Value {
	m, _ := r.ToMessage() // the error says that the reply is an error or null
	return valueOf(&m)
}

// valueOf converts a message to a Value. The keys of a map are sorted. A set becomes an
// array, and a status a bulk string, because rueidis does not distinguish them.
func valueOf(m *rueidis.RedisMessage) conn.Value {
	switch {
	case m.IsString():
		s, _ := m.ToString()
		return conn.Value{Kind: resp.KindBulk, Str: s}
	case m.IsInt64():
		n, _ := m.ToInt64()
		return conn.Value{Kind: resp.KindInt, Int: n}
	case m.IsArray():
		return arrayValue(m)
	case m.IsNil():
		return conn.Value{Kind: resp.KindNull}
	case m.IsMap():
		return mapValue(m)
	case m.IsFloat64():
		f, err := m.ToFloat64()
		if err != nil {
			return wrong(err)
		}
		return conn.Value{Kind: resp.KindDouble, Float: f}
	case m.IsBool():
		v := conn.Value{Kind: resp.KindBool}
		if yes, _ := m.ToBool(); yes {
			v.Int = 1
		}
		return v
	case m.Error() != nil:
		s, _ := m.ToString() // Error removes the code ERR
		return conn.Value{Kind: resp.KindError, Str: s}
	}
	s, err := m.ToString()
	if err != nil {
		return wrong(err)
	}
	return restValue(s)
}

// restValue returns the Value of a verbatim text, which begins with its format and a
// colon, or of a big number, which does not.
func restValue(s string) conn.Value {
	if len(s) >= 4 && s[3] == ':' {
		return conn.Value{Kind: resp.KindVerbatim, Format: [3]byte{s[0], s[1], s[2]}, Str: s[4:]}
	}
	if s != "" && strings.Trim(s[1:], "0123456789") == "" && strings.Trim(s[:1], "+-0123456789") == "" {
		return conn.Value{Kind: resp.KindBigNumber, Str: s}
	}
	return conn.Value{Kind: resp.KindBulk, Str: s}
}

func arrayValue(m *rueidis.RedisMessage) conn.Value {
	elems, _ := m.ToArray()
	v := conn.Value{Kind: resp.KindArray, Elems: make([]conn.Value, len(elems))}
	for i := range elems {
		v.Elems[i] = valueOf(&elems[i])
	}
	return v
}

func mapValue(m *rueidis.RedisMessage) conn.Value {
	pairs, err := m.ToMap()
	if err != nil {
		return wrong(err)
	}
	keys := make([]string, 0, len(pairs))
	for k := range pairs {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	v := conn.Value{Kind: resp.KindMap, Elems: make([]conn.Value, 0, 2*len(keys))}
	for _, k := range keys {
		e := pairs[k]
		v.Elems = append(v.Elems, conn.Value{Kind: resp.KindBulk, Str: k}, valueOf(&e))
	}
	return v
}

// wrong returns the Value for a reply that rueidis cannot decode.
func wrong(err error) conn.Value { return conn.Value{Kind: resp.KindError, Str: "ERR " + err.Error()} }
