"""slurm.conf and its companion files, rendered from the specs. They are apart from the objects, because `soperator diff` needs only the files."""
