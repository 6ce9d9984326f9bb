"""slurm.conf and its companion files, rendered from the specs."""
