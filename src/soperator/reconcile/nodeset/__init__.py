"""The reconciler of NodeSets."""
