"""What the jobs of a node use, measured beside slurmd and served to Prometheus from another container."""
