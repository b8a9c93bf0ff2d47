"""The configuration: schema, loading, secrets."""
