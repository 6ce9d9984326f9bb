"""Metrics of a cluster and of the operator as data, so that the exporter, the alerts, the dashboards and the reference page share one source."""
