"""Real servers for tests of several replicas."""

from job_tools import migrated
from postgres import postgres_server, postgres_url
from s3_server import s3_endpoint, s3_server
from valkey_server import valkey_server, valkey_url

__all__ = ["migrated", "postgres_server", "postgres_url", "s3_endpoint", "s3_server", "valkey_server", "valkey_url"]
