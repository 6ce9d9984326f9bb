"""`make bench`: the figures that docs/performance.md reports, each beside its goal.

`figures` says what is measured and what is good enough, `record` keeps every run, `report` writes the page; `audit` counts requests in an API
server's audit log. `alone` measures the operator against an API server that has nothing else to do, `live` the whole local cluster.
"""
