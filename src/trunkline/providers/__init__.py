"""Providers as data: one TOML file each."""
