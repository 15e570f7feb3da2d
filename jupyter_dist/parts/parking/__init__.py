"""Parking: a group gives its devices back while it is idle, and keeps all variables (docs/how-to/park.md)."""

from jupyter_dist.protocol.models.sentences import say

WORDS = ("look_to_park", "parkingofgroup", "parkingofrank")
COMMON_WORDS = ("park",)
NEWER_REQUESTS = {"park": say("be parked"), "resume": say("be parked")}
MAGICS = dict.fromkeys(
    ("%dist_park", "%dist_resume"), "In JupyterLab, the sidebar of groups does it, in a terminal 'jupyter dist'."
)
