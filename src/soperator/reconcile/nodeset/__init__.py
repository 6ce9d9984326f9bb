"""The pass of a NodeSet."""
