"""What the pods of a backup and of a restoration run. It needs only the standard library, restic, and the programs of MariaDB."""
