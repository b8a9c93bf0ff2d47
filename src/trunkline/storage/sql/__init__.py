"""Keys, ledger, jobs, media index: SQLAlchemy Core on SQLite or PostgreSQL."""
