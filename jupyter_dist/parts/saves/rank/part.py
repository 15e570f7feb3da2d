"""The saves and restores of a rank, for its agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jupyter_dist.parts.saves.transfer import TransferDecision
from jupyter_dist.protocol.wire.specs import RankSpec
from jupyter_dist.rank.guard.own import json
from jupyter_dist.rank.part import RankCall, RankCore, RankPart, RankRequest

from .transfers import RankTransfers


class SavesOnRank(RankPart):
    """Carries out saves and restores, and passes on the agent's decisions."""

    def __init__(self, core: RankCore) -> None:
        super().__init__(core)
        self._transfers = RankTransfers(core)

    def calls(self) -> Mapping[str, RankCall]:
        """Return how ranks save and restore."""
        return {"save": self._transfers.save, "restore": self._transfers.restore}

    def idle_requests(self) -> Mapping[str, RankRequest]:
        """Return the answers between cells."""
        return {
            "preview_save": lambda *_: self._transfers.preview(),
            "restore_alone": lambda _, payload: self._transfers.restore_alone(json.loads(payload)),
        }

    def received(self, content: dict[str, Any]) -> None:
        """Take the agent's decision about a save or a restore."""
        self._transfers.take(cast("TransferDecision", content))

    def cut_off(self, reason: str) -> None:
        """Drop the save or restore under way."""
        self._transfers.cut_off(reason)

    def take_place(self, spec: RankSpec) -> None:
        """Have another number, or be in a group of another size."""
        self._transfers.take_place(spec)
