"""The built playground and admin pages."""
