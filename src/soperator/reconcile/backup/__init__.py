"""Reconciles SlurmBackups."""
