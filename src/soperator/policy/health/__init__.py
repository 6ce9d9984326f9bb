"""What follows from the checks of nodes: drain, resume, replacement."""
