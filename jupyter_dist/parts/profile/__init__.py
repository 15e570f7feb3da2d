"""`%%profile`: a cell under torch's profiler on ranks; a table of where their time went, and the merged trace."""

# By which code names it. Threads, IPython and torch have profiles, too.
WORDS = ("%%profile", "profiled_?cells?", "rank_?profile", "profile_?mime", "trace_?file", "[.]profile", "save_?trace")
CELL_MAGICS = {"profile": "under torch's profiler"}
OUTPUT_KINDS = {"profile": f"{__name__}.comparing.profile_output"}
