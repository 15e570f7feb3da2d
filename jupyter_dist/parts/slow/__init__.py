"""Why a running cell is slow: measured on its ranks, judged in the agent."""

WORDS = ("pace", "slowness", "slow_?cause")  # by which code names it
NEWER_REQUESTS = {"pace": "report why a cell is slow"}
