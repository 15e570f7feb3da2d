"""Options: groups that a start parks, and when a group parks itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from jupyter_dist.protocol.field import OptionField
from jupyter_dist.protocol.wire.specs import MAX_GRACE_SECONDS


@dataclass(frozen=True, kw_only=True)
class ParkingOptions:
    """When groups are parked."""

    park: Annotated[
        list[str],
        OptionField(
            start="Idle groups, by name or id, that are parked before: the group needs their devices.",
            label="Park first",
            schema={"type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 100},
            metavar="GROUP",
            is_once=True,
        ),
    ] = field(default_factory=list)
    park_after_seconds: Annotated[
        float,
        OptionField(
            "How long a group on devices may be without use before it is parked, in seconds: it gives its devices"
            " back, keeps all variables, and the next cell resumes it. 0: groups are parked on request alone.",
            start="Park the group when nobody has used it for so long; 0: never. By default the server's setting for "
            "groups on devices. A group on CPU is parked into files.",
            label="Park after (s)",
            minimum=0,
            maximum=MAX_GRACE_SECONDS,
        ),
    ] = 0.0
