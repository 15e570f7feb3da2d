"""Properties of a Result that are of parts. Made by `make generate` from their packages `client`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_dist.client.answers.infos import ProfileInfo
from jupyter_dist.protocol.parts import of_part

if TYPE_CHECKING:
    from jupyter_dist.client.ofparts import Curve


class PlainResult:
    """Properties of parts."""

    @property
    def numbers(self) -> dict[str, dict[int, Curve]]:
        """Return the numbers with a name that recur in this result's output: by name, then by rank.

        The result of a long cell does not have its whole output; `group.curves()` reads the whole output.
        """
        found: dict[str, dict[int, Curve]] = of_part("curves", "result").numbers(self)
        return found

    @property
    def profile(self) -> ProfileInfo | None:
        """Return the profile of a cell that ran under %%profile and has ended: where the time of each rank went."""
        found: ProfileInfo | None = of_part("profile", "result").profile(self)
        return found
