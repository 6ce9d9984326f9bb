#!/bin/sh
# One job over two kinds of machines: two nodes with H100s, and beside them two with A100s.
# shellcheck disable=SC2016 # what is in single quotes is for the shells on the nodes
#SBATCH --job-name=two-gpu-types
#SBATCH --output=two-gpu-types.out
#SBATCH --time=10
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=1 --gres=gpu:h100:8
#SBATCH hetjob
#SBATCH --partition=gpu --nodes=2 --ntasks-per-node=1 --gres=gpu:a100:8

# Each group by itself, both at once.
srun --het-group=0 sh -c 'echo "H100s: $(hostname) has $SLURM_GPUS_ON_NODE"' &
srun --het-group=1 sh -c 'echo "A100s: $(hostname) has $SLURM_GPUS_ON_NODE"' &
wait
# One step over all four nodes.
srun --het-group=0,1 sh -c 'echo "together: task $SLURM_PROCID on $(hostname)"'
