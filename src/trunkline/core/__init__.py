"""The vocabulary: events, grammar, normaliser, domain types, errors, ports."""
