"""The repository of backups, as `soperator restore` reads it."""
