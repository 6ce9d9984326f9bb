"""A small controller runtime: correct caches, level-triggered passes and few writes. It contains nothing of Slurm.

No Python framework combines a correct relist, server-side apply and a Lease, and each of them is about a hundred lines here.
"""
