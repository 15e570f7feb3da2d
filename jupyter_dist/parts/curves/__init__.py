"""Curves: numbers with a name that recur in what ranks print, such as the loss of a training loop."""

WORDS = ("curves_file", "CurvesModel", "open-curves")  # by which code names it
