"""The pods of a NodeSet, and the difference between a running pod and the template, which is the cause of a rollout."""
