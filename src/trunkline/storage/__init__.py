"""Where state lives: SQL, shared counters, media bytes."""
