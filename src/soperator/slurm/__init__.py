"""Slurm as a domain: nodes, jobs, host lists, configuration files, accounting. All of it pure, and it knows nothing of Kubernetes."""
