"""Paths that several roles mount or name."""

#: What the jail's programs of ours, and Slurm's commands, are mounted from.
BUNDLE = "/opt/soperator"
PLAN_PATH = "/etc/soperator/jail/plan"
