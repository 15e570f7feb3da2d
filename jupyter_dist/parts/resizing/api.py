"""What clients may ask, and what a group shows: another number of ranks, and the last change of it."""

from __future__ import annotations

from typing import Annotated

from jupyter_dist.protocol.field import Field
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations.declaration import Answer, Operation
from jupyter_dist.protocol.operations.of_group import ASKING

from .models import ResizeModel, ResizeRequest

GROUP_FIELDS = {"resized": Annotated[ResizeModel | None, Field("The last change of its size, or the one under way.")]}
OPERATIONS = (
    Operation(
        name="resize",
        verb="post",
        path="groups/{group}/resize",
        right="execute",
        sentence="Change the number of ranks; ranks that stay keep their processes and variables.",
        body=ResizeRequest,
        is_keyed=True,
        answer=Answer("The group; it is resizing", models.GroupModel, 202),
        errors=(*ASKING, "bad_devices", "bad_environment"),
    ),
)
