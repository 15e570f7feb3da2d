"""Its option."""

from dataclasses import dataclass
from typing import Annotated

from jupyter_dist.protocol.field import OptionField


@dataclass(frozen=True, kw_only=True)
class CountingOptions:
    counting_from: Annotated[int, OptionField("Where cells are counted from.", start="Likewise.", minimum=0)] = 0
