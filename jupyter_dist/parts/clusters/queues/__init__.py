"""PBS, LSF and Grid Engine: batch queues without a command that starts a program on all nodes of a job."""
