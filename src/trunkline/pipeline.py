"""The pure line: bytes of an upstream in, events out; no I/O, clock or randomness."""
