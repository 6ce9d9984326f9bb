"""A small controller runtime: correct caches, level-triggered passes, few writes.

It knows nothing of Slurm. No Python framework has a correct relist, server-side apply and a Lease together, and each
of them is about a hundred lines here.
"""
