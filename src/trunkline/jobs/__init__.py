"""The durable engine behind a small port."""
