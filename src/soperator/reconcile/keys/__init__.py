"""Keys in Secrets: created, restored, rotated, and users' tokens."""
