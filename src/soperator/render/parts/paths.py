"""Paths that several roles mount or name, defined once so that both sides of a mount agree."""

#: What the jail's programs of ours, and Slurm's commands, are mounted from.
BUNDLE = "/opt/soperator"
PLAN_PATH = "/etc/soperator/jail/plan"
