"""Commands that show the cells, the output, the curves and the variables of ranks."""
