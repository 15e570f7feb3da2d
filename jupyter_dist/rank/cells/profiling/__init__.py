"""`%%profile`: a cell under torch's profiler; what it was doing when, and its trace."""
