"""Decisions about one SlurmCluster: configuration, images, keys, jail, accounting, conditions."""
