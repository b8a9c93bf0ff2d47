"""Captured streams as people paste them: what departs from the output contract, and what clients make of it."""
