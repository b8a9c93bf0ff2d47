"""What listens: one file an endpoint group."""
