"""Properties of a Result."""

from __future__ import annotations

from jupyter_dist.client.answers.infos import ProfileInfo
from jupyter_dist.client.results.result import Result
from jupyter_dist.parts.profile.models import PROFILE_MIME


def profile(result: Result) -> ProfileInfo | None:
    """Return the profile of a cell that ran under %%profile and has ended: where the time of each rank went."""
    for item in reversed(result.folded):
        output = item.get("output")
        if output is not None and output["output_type"] == "display_data" and PROFILE_MIME in output["data"]:
            return ProfileInfo(output["data"][PROFILE_MIME])
    return None
