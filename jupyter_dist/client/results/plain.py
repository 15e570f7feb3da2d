"""Properties of a Result that are of parts. Made by `make generate` from their packages `client`."""

from __future__ import annotations

from jupyter_dist.client.answers.infos import ProfileInfo
from jupyter_dist.protocol.parts import of_part


class PlainResult:
    """Properties of parts."""

    @property
    def profile(self) -> ProfileInfo | None:
        """Return the profile of a cell that ran under %%profile and has ended: where the time of each rank went."""
        found: ProfileInfo | None = of_part("profile", "result").profile(self)
        return found
