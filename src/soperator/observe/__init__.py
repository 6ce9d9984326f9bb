"""Metrics of a cluster and of the operator as data, with their alerts and dashboards."""
