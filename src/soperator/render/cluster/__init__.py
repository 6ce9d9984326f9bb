"""The objects of one SlurmCluster, one module for each role."""
