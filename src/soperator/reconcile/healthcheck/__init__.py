"""The reconciler of HealthChecks."""
