package main

import "os"

// Config is what the environment says.
type Config struct {
	Addr string
	Base string
}

// ReadConfig reads the environment.
func ReadConfig() Config {
	config := Config{Addr: ":8080", Base: "http://localhost:8080"}
	if addr := os.Getenv("ADDR"); addr != "" {
		config.Addr = addr
	}
	return config
}
