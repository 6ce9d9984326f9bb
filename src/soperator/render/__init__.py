"""Pure rendering: from what is wanted to Kubernetes objects and Slurm's files."""
