"""A release: one folder with everything that an installation without this repository needs, and its way into a registry.

`images`, `charts` and `artifacts` each make a part of the folder, `sums` signs it, `push` publishes it, and `__main__` is the order. The
chain of trust has one signature: it is of SHA256SUMS, which has the charts, which name the images by digest.
"""
