"""What ranks change in IPython: its displays, its tracebacks, and what differs between its versions."""
