"""Imports the files of a Slurm that runs on machines: slurm.conf with its includes, gres.conf, cgroup.conf, slurmdbd.conf, scripts."""
