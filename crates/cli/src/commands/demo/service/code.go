package main

import "crypto/rand"

const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"

// NewCode makes up a code for a link.
func NewCode() string {
	code := make([]byte, 7)
	rand.Read(code)
	for i := range code {
		code[i] = alphabet[int(code[i])%len(alphabet)]
	}
	return string(code)
}
