"""Departures from a dialect: one file each, named in a provider's TOML."""
