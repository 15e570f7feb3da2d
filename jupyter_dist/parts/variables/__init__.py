"""The panel of variables, and the strip where ranks began to differ; lists and comparisons are the core's."""

WORDS = ("variables_?(?:panel|view)", "open_?variables")  # by which code names it
