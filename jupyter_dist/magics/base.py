"""What our classes of magics share."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics

from .automode import AutoMode
from .session import Session


class RankMagics(Magics):
    """Magics of one kernel: its shell, its group, and where its cells go by themselves."""

    def __init__(self, shell: Any, session: Session, auto: AutoMode) -> None:
        super().__init__(shell)
        self.session = session
        self.auto = auto

    def mode(self) -> str:
        """A sentence: where cells run."""
        if self.auto.prefix is None:
            return "Cells run in the kernel; %dist_mode -e sends them to the ranks."
        return f"Cells run on the ranks (%%{self.auto.prefix}); %dist_mode -d makes them local."
