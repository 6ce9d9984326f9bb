"""The verbs about a running cluster: status, jobs, nodes, logs, logins, the support archive."""
