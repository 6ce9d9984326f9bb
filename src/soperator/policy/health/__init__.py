"""The consequences of health checks for nodes: drain, resume, replacement."""
