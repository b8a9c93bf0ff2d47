"""Real servers for tests of several replicas."""

from postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
