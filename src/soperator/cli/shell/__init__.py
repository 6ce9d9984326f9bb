"""The integration of the command line into a shell and into kubectl: completion, and the plugin `kubectl slurm`."""
