"""The kinds: one module for each, shared parts, and rules that a schema cannot express."""
