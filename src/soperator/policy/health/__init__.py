"""The consequences of nodes' checks: drain, resume, replacement."""
