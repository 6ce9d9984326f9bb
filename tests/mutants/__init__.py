"""Conditions that protect a job, a key or an administrator's word, each taken out alone: some test has to notice (`make mutants`)."""
