"""Turns the configuration of another system into our objects, with a report of everything that was not carried over.

One package for each system: files of Slurm on bare metal, objects of the original, objects of Slinky. Each is a pure function from texts or decoded
YAML to specs and entries of a report. Every setting of the input has an entry, so that nothing is lost unseen (docs/decisions/0160).
"""
