"""Debuggers of cells: those with a prompt, and JupyterLab's."""
