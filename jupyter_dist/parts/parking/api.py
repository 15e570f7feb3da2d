"""What clients may ask, and what a group shows: to park it and to resume it, and where its memory is meanwhile."""

from __future__ import annotations

from typing import Annotated

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_group import ASKING
from jupyter_dist.protocol.wire.requests import EmptyRequest

from .models import ParkedState, ParkRequest
from .options import ParkingOptions

GROUP_OPTIONS = ParkingOptions
GROUP_FIELDS = {"parked": Annotated[ParkedState | None, Field("Where its memory is; null unless it is parked.")]}
OPERATIONS = (
    Operation(
        name="park",
        command="park",
        verb="post",
        path="groups/{group}/park",
        right="execute",
        sentence="Give the devices of an idle group back; its ranks keep all variables.",
        details="The next cell resumes it.",
        body=ParkRequest,
        is_keyed=True,
        answer=Answer("The group; its tensors are leaving the devices", models.GroupModel, 202),
        errors=ASKING,
    ),
    Operation(
        name="resume",
        command="resume",
        verb="post",
        path="groups/{group}/resume",
        right="execute",
        sentence="Bring the tensors of a parked group back to its devices; a cell does so, too.",
        body=EmptyRequest,
        is_keyed=True,
        answer=Answer("The group; its tensors are returning", models.GroupModel, 202),
        errors=ASKING,
    ),
)
