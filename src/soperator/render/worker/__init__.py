"""The pods of a NodeSet."""
