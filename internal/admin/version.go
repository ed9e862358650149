package admin

// Version is ebb's own version: the newest release in CHANGELOG.md. INFO, /metrics and
// `ebb version` show it; a test in cmd/ebb compares them.
const Version = "0.6.0"

// RedisVersion is the version of Redis that the server reports in INFO and HELLO. Clients
// switch features on by it.
const RedisVersion = "7.4.0"
