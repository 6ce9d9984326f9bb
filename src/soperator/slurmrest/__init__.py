"""The only code that sends HTTP to slurmrestd, so that one place bounds and checks its answers."""
