"""Imports the objects of Slinky, of the group slinky.slurm.net."""
