package resp_test

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/resp"
)

// A reply is read by what the caller needs, not by its kind.
func ExampleValue() {
	user := resp.Value{Kind: resp.KindMap, Elems: []resp.Value{
		{Kind: resp.KindBulk, Str: "name"}, {Kind: resp.KindBulk, Str: "ann"},
		{Kind: resp.KindBulk, Str: "visits"}, {Kind: resp.KindBulk, Str: "12"}}}
	visits, _ := user.Get("visits")
	fmt.Println(visits.AsInt())
	fmt.Println(user)

	var refused resp.ReplyError
	err := resp.Value{Kind: resp.KindError, Str: "WRONGTYPE it is a list"}.Err()
	fmt.Println(errors.As(err, &refused), refused.Code())
	// Output:
	// 12 <nil>
	// {"name":"ann","visits":"12"}
	// true WRONGTYPE
}
