package main

// monotonic is not needed here: clusters of redis-server do not run on Windows.
func monotonic() int64 { panic("not on this system") }
