"""The only code that speaks HTTP to Kubernetes.

It has verbs, kinds and the few fields that we read; it keeps no state between requests, and imports nothing of the runtime above it.
"""
