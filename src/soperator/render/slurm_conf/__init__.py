"""slurm.conf and the files beside it."""
