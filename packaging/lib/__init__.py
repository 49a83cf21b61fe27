"""Packages of Surehand for people who have no Rust: one module per format."""
