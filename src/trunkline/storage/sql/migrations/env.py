"""What Alembic runs around a migration: our connection, one transaction for all of it."""

from alembic import context

from trunkline.storage.sql.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,  # SQLite can, Alembic does not assume it
    render_as_batch=True,
)
context.run_migrations()
