"""The settings of Slurm's files: the keywords that exist, those that the operator owns, and the effect of a change. The operator needs them,
because slurmctld exits on many faults.
"""
