"""The exporter of a cluster: queries slurmrestd, computes metrics, and serves them to Prometheus and to people."""
