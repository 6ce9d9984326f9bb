"""Checks a Kubernetes cluster before an installation: the facts, the checks, and the verb."""
