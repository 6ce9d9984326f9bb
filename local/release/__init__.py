"""A release: the files with which an installation needs nothing of this repository, in one flat folder, and their way into a registry.

`images`, `charts` and `artifacts` each make a part of the folder, `sums` signs it, `push` publishes it, and `__main__` is the order. The
chain of trust has one signature: it is of SHA256SUMS, which has the charts, which name the images by digest.
"""
