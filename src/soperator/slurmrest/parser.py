"""The version of slurmrestd's data parser that this release uses, defined only here.

slurmrestd 24.11 to 26.05 have it. The images have it in images/slurm/parser and in nginx.conf, which a test compares with this.
"""

PARSER = "v0.0.42"
