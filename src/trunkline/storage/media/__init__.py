"""Media bytes: local disk or S3."""
