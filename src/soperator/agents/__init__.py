"""Programs that run inside the pods.

Identity and populate use only the standard library, so they start fast and need little memory.
"""
