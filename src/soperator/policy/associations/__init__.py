"""Accounts and QOS: the commands that bring Slurm's database to the state of a spec."""
