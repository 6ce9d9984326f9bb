#!/bin/sh
mkdir -p /scratch/$SLURM_JOB_ID
