"""The schema's history: Alembic migrations."""
