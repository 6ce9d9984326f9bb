"""Quick checks of a worker: their definitions as data, the evaluation of a measurement, the state of a check, and the report.

All of it is pure, so that the operator and the worker share it. A worker has only Debian's minimal Python library; only `catalog` needs more.
"""
