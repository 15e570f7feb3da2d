"""Why a running cell is slow: measured on its ranks, judged in the agent."""

from jupyter_dist.protocol.models.sentences import say

WORDS = ("pace", "slowness", "slow_?cause")  # by which code names it
NEWER_REQUESTS = {"pace": say("report why a cell is slow")}
