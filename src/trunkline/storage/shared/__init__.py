"""Counters, stream replay and fan-out: in process, or Valkey."""
