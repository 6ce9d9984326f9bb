"""The support archive of a cluster: what it contains, and how the contents of Secrets are removed from it."""
