"""Pure rendering: functions from the desired state to Kubernetes objects and Slurm's files, without I/O so that golden files can prove them."""
