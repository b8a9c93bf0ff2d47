"""A migrated database to copy."""

from job_tools import migrated

__all__ = ["migrated"]
