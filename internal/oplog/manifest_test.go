package oplog

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestManifestsOfRedisAreReadAndWrittenAlike(t *testing.T) {
	for _, text := range []string{
		"file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n",
		"file appendonly.aof.2.base.rdb seq 2 type b\nfile appendonly.aof.1.base.rdb seq 1 type h\nfile appendonly.aof.1.incr.aof seq 1 type h\nfile " +
			"appendonly.aof.2.incr.aof seq 2 type i\n",
		"file \"my file.aof.2.base.rdb\" seq 2 type b\nfile \"my file.aof.2.incr.aof\" seq 2 type i\n",
		"file appendonly.aof seq 1 type b\n",
		"file \"a\\\"b\\\\c\\xc3.1.incr.aof\" seq 1 type i\n",
	} {
		m, err := ParseManifest([]byte(text))
		if strings.Contains(text, `\\`) {
			if err == nil {
				t.Errorf("a backslash in a name was taken: %q", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := string(m.Format()); got != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

func TestManifestSkipsCommentsAndUnknownKeys(t *testing.T) {
	m, err := ParseManifest([]byte("# by hand\nFILE a.3.incr.aof  seq 3\ttype i startoffset 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (&Manifest{Incrs: []Part{{"a.3.incr.aof", 3, Incr}}}); !reflect.DeepEqual(m, want) {
		t.Errorf("read is %+v, want %+v", m, want)
	}
}

func TestManifestRefusesWhatIsWrong(t *testing.T) {
	for _, text := range []string{
		"",
		"\n",
		"file a seq 1\n",
		"file a seq 1 type\n",
		"file a seq 1 type x\n",
		"file a seq 0 type i\n",
		"file a seq b type i\n",
		"file a seq 1 type bb\n",
		"file ../a seq 1 type i\n",
		"file \"a seq 1 type i\n",
		"file a\\b seq 1 type i\n",
		"seq 1 type i other a\n",
		"file a seq 1 type b\nfile b seq 2 type b\n",
		"file a seq 2 type i\nfile b seq 2 type i\n",
		"file a seq 1 type b\nfile a seq 1 type h\n",
		"file a seq 1 type h\nfile b seq 1 type b\nfile a seq 1 type i\n",
		"file a seq 9223372036854775807 type b\n",
		"file " + strings.Repeat("a", 1024) + " seq 1 type i\n",
	} {
		if _, err := ParseManifest([]byte(text)); !errors.Is(err, ErrManifest) {
			t.Errorf("%q: got %v, want ErrManifest", text, err)
		}
	}
}
