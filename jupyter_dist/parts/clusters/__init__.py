"""Starts the nodes of groups on the engines that people run: Slurm, PBS, LSF, Grid Engine, Ray and Kubernetes."""

# By which code names it. Variables of Slurm are read by the core, too: users start node agents by `srun` themselves.
WORDS = ("slurm_?launcher", "ray_?launcher", "kubernetes_?launcher", "queue_?launcher", "grid_?engine")
