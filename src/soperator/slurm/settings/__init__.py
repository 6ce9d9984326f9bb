"""The settings of Slurm's files: which there are, which are ours, and what a change of them means."""
