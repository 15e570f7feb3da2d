"""The parts that all batch queues share whose command line tools are used: the job, its files and its following."""
