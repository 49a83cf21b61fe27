package main

import "sync"

// Store keeps links by their codes.
type Store struct {
	mutex  sync.Mutex
	links  map[string]string
	visits map[string]int
}

// NewStore is an empty store.
func NewStore() *Store {
	return &Store{links: map[string]string{}, visits: map[string]int{}}
}

// Put keeps a link.
func (s *Store) Put(code, target string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.links[code] = target
}

// Get finds a link.
func (s *Store) Get(code string) (string, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	target, found := s.links[code]
	return target, found
}
