package packed

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// An image built by appending is the one that planned edits build.
func TestAppendWritesWhatEditsWrite(t *testing.T) {
	keys := [][]byte{[]byte("7"), {}, []byte("-70000"), []byte("member"), []byte("01"), bytes.Repeat([]byte("x"), 300),
		[]byte(strings.Repeat("y", 70000))}
	hash, set, list, zset := New(nil, KindHash), New(nil, KindSet), New(nil, KindList), New(nil, KindZSet)
	hash2, set2, list2, zset2 := New(nil, KindHash), New(nil, KindSet), New(nil, KindList), New(nil, KindZSet)
	apply := func(p *Packed, e Edit) { *p = e.Apply(make([]byte, e.Size())) }
	for i, k := range keys {
		v, score := []byte(fmt.Sprint("value", i)), float64(i)*0.7-1
		hash, set, list, zset = hash.AppendField(k, v), set.Append(k), list.Append(k), zset.AppendScore(k, score)
		e, _ := hash2.PutField(k, v, 0, 0)
		apply(&hash2, e)
		e, _ = set2.PutMember(k, 0, 0)
		apply(&set2, e)
		apply(&list2, list2.PushBack(k, 0))
		e, _ = zset2.PutScore(k, score, 0, 0)
		apply(&zset2, e)
	}
	for _, c := range [][2]Packed{{hash, hash2}, {set, set2}, {list, list2}, {zset, zset2}} {
		if !bytes.Equal(c[0], c[1]) {
			t.Errorf("kind %d: appended\n%x\nedited\n%x", c[0].Kind(), c[0][:60], c[1][:60])
		}
		if err := Validate(c[0]); err != nil {
			t.Error(err)
		}
	}
}
