"""The exporter of a cluster: reads slurmrestd, counts, and serves the counts to Prometheus and to people."""
