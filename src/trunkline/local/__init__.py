"""The embedded models: child processes that speak the OpenAI API on loopback."""
