"""Operations on a server: versions, environments, devices, launchers, and starting a group."""

from __future__ import annotations

from typing import Any

from jupyter_dist.protocol.models import machine, models
from jupyter_dist.protocol.wire import requests

from .declaration import Answer, Operation

# A character of the environment takes up to four bytes in JSON.
MAX_START_BYTES = 4 * requests.MAX_ENVIRON_CHARS

SERVER_OPERATIONS = (
    Operation(
        name="versions",
        verb="get",
        path="",
        right="read",
        sentence="Return the versions of the server, of its protocol and of its API.",
        answer=Answer("Versions", models.Versions),
    ),
    Operation(
        name="openapi",
        verb="get",
        path="openapi.json",
        right="read",
        sentence="Return the description of the API.",
        answer=Answer("OpenAPI 3.1", dict[str, Any]),
    ),
    Operation(
        name="environments",
        verb="get",
        path="environments",
        right="read",
        sentence="Return the environments that groups can run in.",
        answer=Answer("Environments", models.EnvironmentsModel),
    ),
    Operation(
        name="warm",
        verb="post",
        path="environments/{name}/warm",
        right="write",
        why_not_execute="It starts an environment that is listed, never a program of the client's choice.",
        sentence="Keep an agent with torch imported ready for the next start in an environment.",
        body=requests.EmptyRequest,
        answer=Answer("The agent is being started, or is already waiting", models.Nothing, 202),
        errors=("bad_environment",),
    ),
    Operation(
        name="devices",
        verb="get",
        path="devices",
        right="read",
        sentence="Return the accelerators and the host, and how they are used.",
        answer=Answer("Devices and host", machine.Devices),
    ),
    Operation(
        name="launchers",
        verb="get",
        path="launchers",
        right="read",  # runs sinfo
        sentence="Return the launchers that can start the nodes of a group, with what is free.",
        answer=Answer("Launchers", machine.LaunchersModel, field="launchers"),
    ),
    Operation(
        name="presets",
        verb="get",
        path="presets",
        right="read",
        sentence="Return the presets: named options of a start, which an administrator or the user has written.",
        answer=Answer("Presets", machine.PresetsModel, field="presets"),
        command="presets",
    ),
    Operation(
        name="start_options",
        verb="get",
        path="start_options",
        right="read",
        sentence="Return the options of a start that a form can show by their rows alone, with the server's defaults.",
        details="Where a group runs is not among them: see environments, devices, launchers.",
        answer=Answer("Options", machine.StartOptionRows, field="options"),
    ),
    Operation(
        name="prepared",
        verb="get",
        path="prepared",
        right="read",
        sentence="Return the processes that are kept to make the next start faster, with their memory.",
        answer=Answer("Processes", machine.Prepared, field="processes"),
    ),
    Operation(
        name="groups",
        verb="get",
        path="groups",
        right="read",
        sentence="Return all groups, oldest first, including dead ones, whose logs can still be read.",
        answer=Answer("All groups, oldest first", models.Groups, field="groups"),
    ),
    Operation(
        name="start",
        verb="post",
        path="groups",
        right="execute",
        sentence="Start a group; return while its ranks are starting.",
        body=requests.StartRequest,
        max_body_bytes=MAX_START_BYTES,
        is_keyed=True,
        answer=Answer("The group; its ranks are starting", models.GroupModel, 201, headers=("Location",)),
        errors=(
            *("bad_devices", "bad_environment", "bad_directory", "name_taken", "unknown_group"),
            *("agent_unreachable", "timed_out"),
        ),
    ),
    Operation(
        name="channel",
        verb="get",
        path="channel",
        right="read",  # each cell that is submitted over it needs the right to execute
        sentence="Open the WebSocket (docs/api.md, The WebSocket).",
        answer=Answer("Switching protocols", status=101),
    ),
)
