"""The data parser of slurmrestd that this release speaks: the one place in which its version stands.

slurmrestd 24.11 to 26.05 have it. The images have it in images/slurm/parser and in nginx.conf, which a test compares with this.
"""

PARSER = "v0.0.42"
