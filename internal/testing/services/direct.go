package services

import "github.com/ebbdb/ebb/internal/direct"

// DirectStates makes one direct call of each kind, and returns the kinds whose state is not want.
func DirectStates(d direct.Calls, want direct.State) (differ []string) {
	set := d.Set("k", "v", direct.SetOptions{})
	_, get := d.Get("k")
	_, appendGet := d.AppendGet(nil, "k")
	hset := d.HSet("h", "f", "v", direct.FieldOptions{})
	_, hget := d.HGet("h", "f")
	_, take := d.Take("l", "", &direct.TakeOptions{Limit: 1000, Period: 1e6}, 1, false)
	token, acquire := d.Acquire("lock", "o", 1000, false, false)
	renew := d.Renew("lock", "o", token, 1000)
	release := d.Release("lock", "o", token)
	_, push := d.Push("q", direct.Job{ID: "j", Replace: true})
	for kind, state := range map[string]direct.State{"Get": get, "AppendGet": appendGet, "Set": set, "HSet": hset, "HGet": hget, "Take": take,
		"Acquire": acquire, "Renew": renew, "Release": release, "Push": push} {
		if state != want {
			differ = append(differ, kind)
		}
	}
	return differ
}
