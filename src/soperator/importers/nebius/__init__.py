"""Imports the objects of the original, of the group slurm.nebius.ai."""
