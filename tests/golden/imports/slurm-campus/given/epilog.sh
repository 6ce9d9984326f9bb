#!/bin/sh
rm -rf /scratch/$SLURM_JOB_ID
