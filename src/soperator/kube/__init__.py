"""The only code that sends HTTP requests to Kubernetes.

It has verbs, kinds and the few fields that the operator reads. It keeps no state between requests, and imports nothing of the runtime above it.
"""
