"""The saved output of a cell on ranks, and the text and outputs that readers without the extension show."""
