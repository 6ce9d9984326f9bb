"""The resource usage of a node's jobs: measured beside slurmd, and served to Prometheus by another container."""
