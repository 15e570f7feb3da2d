"""`%%profile`: a cell under torch's profiler; its timeline and its trace."""
