"""Backups with a real restic into a real server with the API of S3; no cluster."""
