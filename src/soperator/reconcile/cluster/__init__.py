"""The reconciler of SlurmClusters, one module per capability."""
