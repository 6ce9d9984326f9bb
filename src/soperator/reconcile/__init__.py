"""The reconcilers: one file per kind, each of which gathers, decides or renders, applies and reports.

Decisions about the domain are in `policy`, objects in `render`.
"""
