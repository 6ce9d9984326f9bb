"""The pass of a SlurmCluster."""
