"""Why a cell cannot end: judged in the agent from what ranks report of themselves."""

WORDS = ("verdicts?", "cannot_end")  # by which code names it
