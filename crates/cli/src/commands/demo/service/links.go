package main

import (
	"fmt"
	"net/http"
)

// Links answers requests about links.
type Links struct {
	store *Store
	base  string
}

// Add keeps a link and tells its code.
func (l *Links) Add(w http.ResponseWriter, r *http.Request) {
	target := r.FormValue("target")
	code := NewCode()
	l.store.Put(code, target)
	fmt.Fprintf(w, "%s/%s\n", l.base, code)
}

// Follow leads on to where a link points.
func (l *Links) Follow(w http.ResponseWriter, r *http.Request) {
	target, found := l.store.Get(r.PathValue("code"))
	if !found {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, target, http.StatusFound)
}
