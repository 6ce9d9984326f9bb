"""The only code that sends HTTP to slurmrestd."""
