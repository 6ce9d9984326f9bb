"""Lists, watches and the stores that they fill."""
