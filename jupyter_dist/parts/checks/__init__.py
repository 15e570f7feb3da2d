"""Checks: whether training is right, by what ranks can prove while it runs (docs/how-to/find-what-is-wrong.md)."""

from jupyter_dist.protocol.models.sentences import say

WORDS = ("set_checks", "dist_checks", "cell_?checks")  # by which code names it
COMMON_WORDS = ("check", "checks")  # runs have an argument of this name, and stores a request
NEWER_REQUESTS = {"set_checks": say("check whether training is right"), "check_model": say("compare a model whole")}
MAGICS = {"%dist_checks": "In Python, group.checks() and group.set_checks()."}
