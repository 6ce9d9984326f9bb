"""What the operator must remember and cannot find out again, in objects of its own: a restore, or a GitOps tool, loses the status."""
