"""The pass of a HealthCheck."""
