"""The commands for reading a group: its cells, output, curves and variables."""
