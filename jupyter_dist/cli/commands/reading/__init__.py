"""The commands for reading a group: its cells, output and variables."""
