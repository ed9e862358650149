package admin

// Version is ebb's own version: the newest heading of CHANGELOG.md, with -dev until it has a date. INFO, /metrics
// and `ebb version` show it; a test in cmd/ebb compares them.
const Version = "0.7.0-dev"

// RedisVersion is the version of Redis that the server reports in INFO and HELLO. Clients
// switch features on by it.
const RedisVersion = "7.4.0"
