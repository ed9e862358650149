package main

import (
	"strings"
	"testing"
)

const events = `{"Action":"run","Package":"m/lock","Test":"TestOneHolder"}
{"Action":"run","Package":"m/lock","Test":"TestOneHolder/mem"}
{"Action":"pass","Package":"m/lock","Test":"TestOneHolder/mem","Elapsed":0.01}
{"Action":"run","Package":"m/lock","Test":"TestOneHolder/redis"}
{"Action":"output","Package":"m/lock","Test":"TestOneHolder/redis","Output":"two holders\n"}
{"Action":"fail","Package":"m/lock","Test":"TestOneHolder/redis","Elapsed":1.5}
{"Action":"fail","Package":"m/lock","Test":"TestOneHolder","Elapsed":1.51}
{"Action":"run","Package":"m/lock","Test":"TestWaits/fair/mem"}
{"Action":"skip","Package":"m/lock","Test":"TestWaits/fair/mem"}
{"Action":"run","Package":"m/lock","Test":"TestWaits/fair/redis"}
{"Action":"fail","Package":"m/lock"}
{"Action":"pass","Package":"m/limit","Test":"TestText"}
{"Action":"pass","Package":"m/limit","Test":"TestLimit/mem","Elapsed":0.2}
not an event
`

func TestTheTableHasEachTestAndBackend(t *testing.T) {
	r := newResults([]string{"mem", "file", "redis"}, "m/")
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	var got, log strings.Builder
	if err := r.write(&got); err != nil {
		t.Fatal(err)
	}
	if err := r.writeFailed(&log); err != nil {
		t.Fatal(err)
	}
	want := `package  test                 mem     redis
limit    TestLimit       ok  0.20         -
lock     TestOneHolder   ok  0.01  FAIL  1.50
         TestWaits/fair      skip      lost

         not for it             0         1
         passed                 2         0
         skipped                1         0
         failed                 0         1
         lost                   0         1
         time               0.2 s     1.5 s

3 tests on 2 backends: 2 passed, 2 failed, 1 skipped, 1 not for the backend, in 2 s
tests of one backend or none: 1 passed, 0 failed, 0 skipped
packages that failed: lock
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	if text := log.String(); !strings.Contains(text, "two holders") || !strings.Contains(text, "not an event") {
		t.Errorf("what failed: %s", text)
	}
}

func TestNoTestsAreNoSuccess(t *testing.T) {
	for _, text := range []string{"", "flag provided but not defined\n", `{"Action":"skip","Package":"m/lock"}`} {
		r := newResults([]string{"mem"}, "m/")
		if err := r.read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if !r.empty() {
			t.Errorf("%q: not empty", text)
		}
	}
}
