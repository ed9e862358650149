package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/console"
	"github.com/ebbdb/ebb/server"
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

// A program that runs a durable server mounts the console next to its own pages.
func ExampleNew_server() {
	dir, err := os.MkdirTemp("", "ebb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	s, err := server.Start(ctx, server.Config{Addr: "127.0.0.1:0", Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	c := s.Conn()
	ui, err := console.New(ebb.EngineOf(c), console.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/ebb/", http.StripPrefix("/admin/ebb", ui))
	pages := httptest.NewServer(mux)

	reply, err := http.Get(pages.URL + "/admin/ebb/api/me")
	if err != nil {
		log.Fatal(err)
	}
	var me struct{ ReadOnly bool }
	err = json.NewDecoder(reply.Body).Decode(&me)
	_ = reply.Body.Close()
	fmt.Println(reply.StatusCode, me.ReadOnly, err)

	pages.Close()
	fmt.Println(ui.Close(), c.Close(), s.Shutdown(ctx)) // the console and the Conn before the server
	// Output:
	// 200 true <nil>
	// <nil> <nil> <nil>
}
