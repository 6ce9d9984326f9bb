"""State that the operator cannot derive from other objects, in objects of its own: a restore, or a GitOps tool, deletes the status."""
