"""Creates, restores and rotates keys in Secrets, and signs users' tokens with them."""
