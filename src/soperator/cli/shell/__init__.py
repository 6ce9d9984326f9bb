"""How the command line fits into a shell and into kubectl: completion, and the plugin `kubectl slurm`."""
