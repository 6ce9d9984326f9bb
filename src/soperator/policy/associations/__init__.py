"""Accounts and QOS: the commands that make Slurm's database what a spec says."""
