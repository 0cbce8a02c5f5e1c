package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

// shower is the program of scripts that stands for a daemon: shower FILE ADDRESS answers GET /v1/state with what is in
// FILE by then, and writes into the file ADDRESS where it listens; ADDRESS.asked has a line for each time. With TOKEN set, it wants that token.
const shower = "shower"

func showing() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: %s FILE ADDRESS", shower)
	}
	asked, err := os.Create(os.Args[2] + ".asked")
	if err != nil {
		return err
	}
	http.HandleFunc("GET /v1/state", func(w http.ResponseWriter, r *http.Request) {
		body, err := os.ReadFile(os.Args[1])
		fmt.Fprintln(asked, r.URL)
		switch token := os.Getenv("TOKEN"); {
		case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
		case err != nil:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":"it has nothing\u001b[31m to show"}`)
		default:
			w.Write(body)
		}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(os.Args[2]+".new", []byte(ln.Addr().String()), 0o666); err != nil {
		return err
	}
	if err := os.Rename(os.Args[2]+".new", os.Args[2]); err != nil {
		return err
	}
	return http.Serve(ln, nil)
}
