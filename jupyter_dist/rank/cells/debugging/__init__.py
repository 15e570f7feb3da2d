"""Debuggers of cells: debuggers with a prompt, and JupyterLab's."""
