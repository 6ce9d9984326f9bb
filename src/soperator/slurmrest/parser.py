"""The version of slurmrestd's data parser that this release uses, defined once so that all requests agree.

slurmrestd 24.11 to 26.05 support it. The images repeat it in images/slurm/parser and nginx.conf; a test compares them.
"""

PARSER = "v0.0.42"
