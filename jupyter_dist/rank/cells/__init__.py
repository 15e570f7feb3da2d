"""Running cells: IPython's shell, what it displays, its tracebacks, and interrupts."""
