package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// ownOptions are those of a server: scripts see more than Redis 7.0 has.
var ownOptions = Options{Version: "7.4.0", Own: "1.20.3-rc1", MemoryLimit: 64 << 20}

// listTables is code that leaves in list the fields of _G, and of the tables in it, with
// their types, and the values of constants of redis and server.
const listTables = `local list, own = {}, {REDIS_VERSION=1, REDIS_VERSION_NUM=1,
	VALKEY_VERSION=1, VALKEY_VERSION_NUM=1, EBB_VERSION=1, EBB_VERSION_NUM=1, SERVER_NAME=1}
for name, v in pairs(_G) do
  list[#list + 1] = name .. " " .. type(v)
  if type(v) == "table" and name ~= "_G" then
    for k, x in pairs(v) do
      local text = name .. "." .. k .. " " .. type(x)
      if (name == "redis" or name == "server") and type(x) ~= "function" and not own[k] then text = text .. " " .. tostring(x) end
      list[#list + 1] = text
    end
  end
end
`

// listLoading is a library whose function lists what a library that loads sees in the table
// of a name.
func listLoading(name string) string {
	return "#!lua name=l\nlocal t = " + name + `
redis.register_function('f', function() local list = {} for k, x in pairs(t) do list[#list + 1] = k .. " " .. type(x) end return list end)`
}

const listRunning = "#!lua name=l\nredis.register_function('f', function() " + listTables + " return list end)"

// fieldSet reads a list in RESP2 into a set of lines.
func fieldSet(t *testing.T, reply string) map[string]bool {
	t.Helper()
	if !strings.HasPrefix(reply, "*") {
		t.Fatalf("the list of fields is %.200q", reply)
	}
	set := map[string]bool{}
	for i, line := range strings.Split(reply, "\r\n") {
		if i > 0 && i%2 == 0 && line != "" {
			set[line] = true
		}
	}
	return set
}

// surfaces returns the globals of EVAL's scripts, of functions that run, and of libraries that load.
func surfaces(t *testing.T, eval func(script string) string, load func(code string) string) [4]map[string]bool {
	t.Helper()
	all := [4]map[string]bool{fieldSet(t, eval(listTables+"return list")), fieldSet(t, load(listRunning)),
		fieldSet(t, load(listLoading("redis"))), {}}
	if all[0]["server table"] {
		all[3] = fieldSet(t, load(listLoading("server")))
	}
	return all
}

func ownSurfaces(t *testing.T) [4]map[string]bool {
	e := New(ownOptions)
	return surfaces(t, func(script string) string { return eval(e, quietHost{}, 2, script) }, func(code string) string {
		if _, err := e.LoadLibrary([]byte(code), true, quietHost{}); err != nil {
			t.Fatal(err)
		}
		out := wire.Writer{Proto: 2}
		fcall(e, quietHost{}, &out, "f")
		return string(out.Buf)
	})
}

// What scripts and functions see here is what they see on the newest servers, but for the
// names of versions.
func TestScriptsSeeWhatTheyDoOnNewerServers(t *testing.T) {
	places := [4]string{"EVAL", "FCALL", "FUNCTION LOAD, redis", "FUNCTION LOAD, server"}
	own := ownSurfaces(t)
	// differs are the words of lines that the server has and we have not, or the other way round.
	for program, differs := range map[string][]string{
		realserver.Redis7:  {"os", "server", "__server__err__handler", "EBB_VERSION", "SERVER_NAME"},
		realserver.Redis8:  {"server", "__server__err__handler", "EBB_VERSION", "SERVER_NAME"},
		realserver.Valkey9: {"VALKEY_VERSION", "EBB_VERSION"},
	} {
		t.Run(program, func(t *testing.T) {
			o := dial(t, realserver.Start(t, program), 2)
			theirs := surfaces(t, func(script string) string { return o.do("EVAL", script, "2", "k1", "k2", "a1", "a2") }, func(code string) string {
				if reply := o.do("FUNCTION", "LOAD", "REPLACE", code); !strings.HasPrefix(reply, "$") {
					t.Fatalf("FUNCTION LOAD: %s", reply)
				}
				return o.do("FCALL", "f", "0")
			})
			for i, place := range places {
				if i == 3 && len(theirs[i]) == 0 {
					continue // no server there
				}
				both := maps.Clone(own[i])
				maps.Copy(both, theirs[i])
				for _, line := range slices.Sorted(maps.Keys(both)) {
					known := slices.ContainsFunc(differs, func(word string) bool { return strings.Contains(line, word) })
					if own[i][line] != theirs[i][line] && !known {
						t.Errorf("%s: %q: here %v, on %s %v", place, line, own[i][line], program, theirs[i][line])
					}
				}
			}
		})
	}
}

func TestServerAndRedisAreOneTable(t *testing.T) {
	e := New(ownOptions)
	for script, want := range map[string]string{
		"return tostring(rawequal(redis, server))":                                   "$4\r\ntrue\r\n",
		"return server.call('ping')":                                                 "-ERR Unknown Redis command called from script script: ...",
		"return server.SERVER_NAME .. ' ' .. redis.EBB_VERSION":                      "$14\r\nebb 1.20.3-rc1\r\n",
		"return server.EBB_VERSION_NUM":                                              fmt.Sprintf(":%d\r\n", 1<<16|20<<8|3),
		"return server.REDIS_VERSION":                                                "$5\r\n7.4.0\r\n",
		"return tostring(rawequal(__server__err__handler, __redis__err__handler))":   "$4\r\ntrue\r\n",
		"return server.sha1hex('')":                                                  "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n",
		"server.replicate_commands() server.breakpoint() server.debug('x') return 1": ":1\r\n",
		"return {tostring(os.time), tostring(os.clock('any', 1))}":                   "*2\r\n$3\r\nnil\r\n$1\r\n0\r\n",
		"#!LUA flags=no-writes\nreturn 1":                                            ":1\r\n",
	} {
		got := eval(e, quietHost{}, 2, script)
		if strings.HasPrefix(want, "-") {
			want, _, _ = strings.Cut(want, " script: ")
			got, _, _ = strings.Cut(got, " script: ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	for _, wrong := range []string{"server.x = 1", "server = 1", "os.x = 1", "os = 1"} {
		if got := eval(e, quietHost{}, 2, wrong); !strings.Contains(got, "Attempt to modify a readonly table") {
			t.Errorf("%s: %q", wrong, got)
		}
	}
}

func TestLibrariesRegisterFunctionsByServer(t *testing.T) {
	e := New(ownOptions)
	code := "#!lua name=l\nlocal n = server.SERVER_NAME server.log(server.LOG_DEBUG, n)\n" +
		"server.register_function('f', function() return n end)"
	if _, err := e.LoadLibrary([]byte(code), false, quietHost{}); err != nil {
		t.Fatal(err)
	}
	out := wire.Writer{Proto: 2}
	fcall(e, quietHost{}, &out, "f")
	if string(out.Buf) != "$3\r\nebb\r\n" {
		t.Errorf("FCALL: %q", out.Buf)
	}
	for _, wrong := range []string{"server.call('get', 'k')", "os.clock()", "server.nope()"} {
		if _, err := e.LoadLibrary([]byte("#!lua name=x\n"+wrong), false, quietHost{}); err == nil ||
			!strings.Contains(err.Error(), "nonexistent global variable") {
			t.Errorf("%s while a library loads: %v", wrong, err)
		}
	}
}

func TestVersionsBecomeNumbers(t *testing.T) {
	for version, want := range map[string]int{"0.6.0": 0x000600, "1.2.3": 0x010203, "1.20.3-rc1": 0x011403, "2": 0x020000, "": 0,
		"7.0.15": 0x07000f, "v1": 0} {
		if got := versionNumber(version); got != want {
			t.Errorf("%q: %#x, want %#x", version, got, want)
		}
	}
}
