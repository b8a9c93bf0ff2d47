"""The only door to providers: client, credentials, download."""
