"""Decisions about one SlurmCluster: configuration, images, keys, jail, accounting, conditions. Each is a separate module with its own inputs, so
that a reader can check it alone.
"""
