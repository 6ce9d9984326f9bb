"""Accounts and QOS: the commands that bring Slurm's database to the state of a spec. The commands are computed without I/O, so that tests
interrupt them at every step.
"""
