package main

import "testing"

func TestStore(t *testing.T) {
	store := NewStore()
	store.Put("a", "https://example.com")
	if target, found := store.Get("a"); !found || target != "https://example.com" {
		t.Errorf("a leads to %q", target)
	}
	if _, found := store.Get("b"); found {
		t.Error("b was never kept")
	}
}
