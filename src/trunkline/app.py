"""The composition root: a configuration in, an application out; the only file that knows every concrete class."""
