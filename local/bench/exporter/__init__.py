"""`make bench-exporter`: what the exporter costs with thousands of nodes and tens of thousands of jobs, and how soon a scrape is answered meanwhile.

`standin` plays slurmrestd, with records of the size that 24.11 writes; `child` is the exporter, which reads each source once and says what it cost.
"""
