"""The pods of a NodeSet, and the difference between a running pod and the template."""
