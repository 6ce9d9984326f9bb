"""`make bench`: the figures that docs/performance.md reports, each beside its goal.

`figures` lists the figures and their goals, `record` stores every run, `report` writes the page, and `audit` counts requests in an API
server's audit log. `alone` measures the operator against an API server without other clients, and `live` measures the whole local cluster.
"""
