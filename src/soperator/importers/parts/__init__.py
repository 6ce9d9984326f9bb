"""What all importers share: the report, names, and the classes of settings of slurm.conf."""
