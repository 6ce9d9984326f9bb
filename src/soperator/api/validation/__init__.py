"""Validation beyond the schema: rules in CEL and in Python, strict reading, and checks of one object against others. The API server, `soperator
lint` and the operator share the messages.
"""
