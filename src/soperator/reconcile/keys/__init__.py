"""Keys in Secrets: they are created, restored and rotated here, and users' tokens are signed with them."""
