"""The only code that speaks HTTP to slurmrestd."""
