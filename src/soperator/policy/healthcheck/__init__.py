"""Deep checks: which node runs one next, and what the results mean."""
