"""Decides when a backup of a cluster is made."""
