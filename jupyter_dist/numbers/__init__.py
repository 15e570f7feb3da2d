"""Numbers in what ranks print: tokens of a line, lines that differ in numbers only, curves. Pure."""
