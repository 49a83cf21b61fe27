package main

import (
	"log"
	"net/http"
)

func main() {
	config := ReadConfig()
	links := &Links{store: NewStore(), base: config.Base}

	routes := http.NewServeMux()
	routes.HandleFunc("POST /links", links.Add)
	routes.HandleFunc("GET /{code}", links.Follow)

	server := &http.Server{Addr: config.Addr, Handler: routes}
	log.Printf("listening on %s", config.Addr)
	log.Fatal(server.ListenAndServe())
}
