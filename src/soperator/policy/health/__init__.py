"""The consequences of health checks for nodes: drain, resume, replacement. They are apart from the checks, because a check must not know the state
of other nodes.
"""
