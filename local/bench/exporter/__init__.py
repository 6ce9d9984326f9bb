"""`make bench-exporter`: measures the exporter with thousands of nodes and tens of thousands of jobs, and the duration of scrapes in the meantime.

`standin` is a fake slurmrestd with records of the size that 24.11 writes. `child` is the exporter, which reads each source once and prints
the cost.
"""
