"""The Kubernetes objects of one SlurmCluster, one module for each role."""
