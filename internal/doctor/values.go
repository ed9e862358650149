package doctor

import "github.com/ebbdb/ebb/conn"

// pairs reads a flat list of names and values.
func pairs(list []conn.Value) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].String()] = list[i+1].String()
	}
	return m
}

// largestSecond returns the greatest number of keys that expire in one second, from a reply to EXPIRY SURVEY.
func largestSecond(survey []conn.Value) (largest int64) {
	for i := 0; i+1 < len(survey); i += 2 {
		if survey[i].String() != "keys" {
			continue
		}
		keys := survey[i+1].Elems
		for j := 0; j+1 < len(keys); j += 2 {
			if keys[j].String() != "seconds" {
				continue
			}
			for _, n := range keys[j+1].Elems {
				largest = max(largest, n.Int)
			}
		}
	}
	return largest
}
