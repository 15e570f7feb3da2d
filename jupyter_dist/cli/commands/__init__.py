"""The commands, each found by its name in main.py: a file for those of groups, of cells, and for each other one."""
