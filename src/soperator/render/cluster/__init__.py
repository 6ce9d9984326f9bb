"""The Kubernetes objects of one SlurmCluster, one module for each role, so that a change of a role is in one file."""
