package console

import (
	"fmt"
	"testing"
)

// Find opens a key only if it exists, and requests it by its name: a walk over many keys might not reach it.
func TestAKeyIsFoundByItsName(t *testing.T) {
	b := newBench(t, Options{})
	for i := range 50 {
		b.admin("SET", fmt.Sprint("mail", i), "v")
	}
	b.admin("DQ.ADD", "mail", "1", "x")
	var page struct {
		Rows  []keyRow
		Named *keyRow
	}
	b.get("api/keys?limit=1&match=mail*&name="+url("mail"), &page)
	if page.Named == nil || page.Named.K.s != "mail" || page.Named.Type != "delayqueue" {
		t.Errorf("the key mail is %+v", page.Named)
	}
	page.Named = nil
	b.get("api/keys?limit=1&match=mai*&name="+url("mai"), &page)
	if page.Named != nil || len(page.Rows) == 0 {
		t.Errorf("the key mai does not exist, and is %+v, of %d", page.Named, len(page.Rows))
	}
	if status, _ := b.ask("GET", "api/keys?name=%21", ""); status != 400 {
		t.Errorf("a name that is no base64: %d", status)
	}
}
