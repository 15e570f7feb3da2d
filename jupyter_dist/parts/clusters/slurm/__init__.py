"""Slurm, by its command line tools alone: sbatch, srun, squeue, scancel, sinfo, scontrol."""
