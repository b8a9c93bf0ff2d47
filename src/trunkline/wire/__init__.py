"""Bytes to frames and back: readers and typed JSON."""
