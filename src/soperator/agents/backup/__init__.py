"""The programs in the pods of a backup and of a restoration. They need only the standard library, restic, and the programs of MariaDB."""
