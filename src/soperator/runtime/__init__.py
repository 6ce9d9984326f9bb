"""A small controller runtime: caches that are right, passes that are level-triggered, writes that are few.

It knows nothing of Slurm. No Python framework has a correct relist, server-side apply and a Lease together, and each
of them is about a hundred lines here.
"""
