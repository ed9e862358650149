package console_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/console"
)

// A program shows its embedded engine to its own users, who have logged in already.
func Example() {
	c, err := ebb.Open(context.Background(), "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do(context.Background(), "ACL", "SETUSER", "support", "on", "nopass", "-@all", "+@read", "~shop:*"); err != nil {
		log.Fatal(err)
	}
	ui, err := console.New(ebb.EngineOf(c), console.Options{
		Label: "staging",
		Access: func(r *http.Request) (user string, ok bool) { // the program's own login
			_, err := r.Cookie("program-session")
			return "support", err == nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ui.Close()
	mux := http.NewServeMux()
	mux.Handle("/ebb/", http.StripPrefix("/ebb", ui))
	server := httptest.NewServer(mux)
	defer server.Close()

	do := func(command string) {
		r, err := http.NewRequest("POST", server.URL+"/ebb/api/do", strings.NewReader(`{"db":0,"argv":[`+command+`]}`))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: "program-session", Value: "1"})
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		fmt.Println(reply.StatusCode, string(body[:20]), err)
	}
	do(`{"t":"GET"},{"t":"shop:1"}`)
	do(`{"t":"SET"},{"t":"shop:1"},{"t":"v"}`)
	// Output:
	// 200 {"reply":null,"text" <nil>
	// 403 {"error":"NOPERM Use <nil>
}
