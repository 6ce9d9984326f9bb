"""Slurm as a domain: nodes, jobs, host lists, configuration files, accounting. All of it is pure and independent of Kubernetes, so that it can be
compared with the real Slurm.
"""
