// Package browsertest drives the pages of package console in a real browser. It is a module of its own,
// because only these tests need chromedp.
//
//	test ── Page ── a tab of Chromium, in an incognito context of its own
//	  │               │ HTTP
//	  └── Server ── a whole server in this process: console, engine, port for clients
//
// One Chromium serves all tests of a run. It starts with the first Page, and Main ends it. A machine without the
// program chromium skips the tests, which with EBB_REQUIRE=1 is a failure.
//
// Invariants: a Page fails its test for each console error, report of the Content-Security-Policy, uncaught
// exception, request to another origin, and answer of 400 or more that the test did not announce by Allow. No
// test waits for a time: Eventually and its siblings wait for a state of the page, and give up after
// Patience, which is far longer than a slow machine needs.
//
// Start reading at Open and Serve.
package browsertest
