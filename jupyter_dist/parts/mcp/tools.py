"""The tools: their arguments, and their answers: text within a limit, or a JupyterDistError."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from jupyter_dist.client import AsyncClient, AsyncExecution, AsyncGroup
from jupyter_dist.client.answers.texts import answer_text
from jupyter_dist.client.blocking.report import stacks_text, status_text
from jupyter_dist.client.startoptions import OPTIONS
from jupyter_dist.protocol.errors import JupyterDistError, bad_request
from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations import AT_CURSOR, OPERATIONS, Operation
from jupyter_dist.protocol.parts import find_modules
from jupyter_dist.protocol.ranks import ranks_in
from jupyter_dist.protocol.schemas import body_schema, run_options_of_parts
from jupyter_dist.protocol.states import GONE_GROUP_STATES, UNREACHABLE_GROUP_STATES
from jupyter_dist.protocol.wire.requests import MAX_CODE_BYTES
from jupyter_dist.system.limits import within

from .answers import bounded, group_line, log_text, page, result_text, variables_text, verdict

MAX_WAIT_SECONDS = 300
DEFAULT_WAIT_SECONDS = 60
ANSWER_SECONDS = 150.0  # for a tool to answer, besides the time that its caller lets it wait
IDLE_SECONDS = 5.0
MAX_NAMES = 200

DESCRIBE = (
    '__import__("jupyter_dist.objects.names", fromlist=["names"]).show('
    "globals(), get_ipython().user_ns_hidden, {prefix!r}, {max_names})"
)

Arguments = dict[str, Any]

GROUP = {"type": "string", "maxLength": 200, "description": "Name or id of the group; the only running one."}
_RANKS = {"type": "string", "maxLength": 1000, "description": "Ranks: all, 0, 0-3,7, ::2, !0 (all but). Default: all."}
_RANK = {"type": "integer", "minimum": 0, "description": "The rank. Default: 0."}
_EXECUTION = {"type": "string", "maxLength": 100, "description": "The id of the execution, e-..."}
OFFSET = {"type": "integer", "minimum": 0, "description": "Show the output from this character on."}
_WAIT = {
    "type": "number",
    "minimum": 0,
    "maximum": MAX_WAIT_SECONDS,
    "description": f"Seconds to wait for the end, at most {MAX_WAIT_SECONDS}. Default: {DEFAULT_WAIT_SECONDS}.",
}


@dataclass(frozen=True)
class Tool:
    """One tool; `changes` if it starts, runs, stops or ends something."""

    name: str
    description: str
    properties: Mapping[str, Any]
    act: Callable[[AsyncClient, Arguments, int], Awaitable[str]]
    required: tuple[str, ...] = ()
    changes: bool = True
    destroys: bool = False  # variables are lost

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    def check(self, arguments: Arguments) -> None:
        """Raise JupyterDistError `bad_request`, naming the first wrong argument."""
        error = next(jsonschema.Draft202012Validator(self.schema()).iter_errors(arguments), None)
        if error is None:
            return
        known = ", ".join(self.properties) or "none"
        if error.validator == "additionalProperties":
            unknown = sorted(set(arguments) - set(self.properties))[0]
            raise bad_request(f"{self.name} has no argument '{unknown[:60]}'.", f"Arguments: {known}.")
        if error.validator == "required":
            missing = next(name for name in self.required if name not in arguments)
            raise bad_request(f"{self.name} needs the argument '{missing}'.", f"Arguments: {known}.")
        name = str(next(iter(error.absolute_path)))
        value = f"{error.instance!r}"
        hint = str(self.properties[name]["description"])
        raise bad_request(f"The argument '{name}' of {self.name} cannot be {value[:80]}.", hint)

    async def answer(self, client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
        """Check the arguments and act, within a time limit. Raises JupyterDistError."""
        self.check(arguments)
        waits = arguments.get("wait_seconds", DEFAULT_WAIT_SECONDS) if "wait_seconds" in self.properties else 0
        limit = ANSWER_SECONDS + waits
        try:
            return await within(limit, self.act(client, arguments, max_chars))
        except asyncio.TimeoutError as err:
            message = f"{self.name} did not end within {limit:g} s."
            raise JupyterDistError("timed_out", message, "Ask verdict what the ranks wait for.") from err


async def list_groups(client: AsyncClient, _: Arguments, max_chars: int) -> str:
    """Return a line for each group."""
    lines = [f"{group_line(group.model)} In {group.model['cwd']}." for group in await client.groups()]
    text = "\n".join(lines) or "No group is running. start_group starts one."
    return bounded(text, max_chars, "verdict describes one group.")


async def start_group(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """Start a group and wait until it is ready."""
    group = await client.start(**arguments)
    text = f"{group_line(group.model)} Ready after {group.model['ready_seconds'] or 0:.1f} s."
    lease = group.model["lease_seconds"]
    if client.is_private and lease:
        text += f" It ends {lease / 3600:g} h after its last Jupyter server, unless it is shut down before."
    return text


async def run_code(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Run a cell and return its output so far."""
    group = await client.attach(arguments.get("group"))
    options: Any = {name: arguments[name] for name in _RUN_OPTIONS if name in arguments}
    execution = await group.submit(arguments["code"], arguments.get("ranks", "all"), **options)
    return await _result(execution, arguments, max_chars)


async def get_result(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the output of a cell."""
    group = await client.attach(arguments.get("group"))
    view = await client.api.ask("GET", "groups", group.id, "executions", arguments["execution"])
    return await _result(AsyncExecution(group, view["execution"]), arguments, max_chars)


async def _result(execution: AsyncExecution, arguments: Arguments, max_chars: int) -> str:
    result = await execution.peek(arguments.get("wait_seconds", DEFAULT_WAIT_SECONDS))
    rest = f"get_result(execution='{execution.id}', offset={{offset}}) continues there."
    return part_of(result_text(result), arguments, max_chars, rest)


def part_of(text: str, arguments: Arguments, max_chars: int, rest: str) -> str:
    """Return the requested part of a text; `rest` describes how to get the next one."""
    if "offset" in arguments:
        return page(text, max_chars, arguments["offset"], rest)
    return bounded(text, max_chars, rest)


async def say_verdict(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the state of a group and of its cells."""
    group = await client.attach(arguments.get("group"))
    executions = await client.api.ask("GET", "groups", group.id, "executions")
    text = verdict(group.model, executions["executions"], await _verdicts(client, group))
    return bounded(text, max_chars, "logs has what each rank printed.")


async def _verdicts(client: AsyncClient, group: AsyncGroup) -> models.Verdicts | None:
    with contextlib.suppress(JupyterDistError):  # its agent does not answer, which the rest of the text describes
        found: models.Verdicts = await client.api.ask("GET", "groups", group.id, "verdicts")
        return found
    return None


def _of_row(operation: Operation) -> Tool:
    """Return the tool of an operation of a group, made of its row in the table."""

    async def act(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
        group = await client.attach(arguments.get("group"))
        given = {"execution_id" if name == "execution" else name: value for name, value in arguments.items()}
        given.pop("group", None)
        if operation.answer.status == HTTPStatus.ACCEPTED:  # an execution, for whose end the client's method waits
            return bounded((await getattr(group, operation.name)(**given)).text, max_chars, "")
        answer = await group.ask(operation.name, **given)
        return bounded(answer_text(operation, answer), max_chars, "verdict is shorter.")

    models_of = [body_schema(model) for model in (operation.body, operation.query) if model is not None]
    fields = {name: field for model in models_of for name, field in model["properties"].items()}
    required = tuple(name for model in models_of for name in model["required"])
    last = {"execution": _EXECUTION} if operation.is_of_last else {}
    changes = operation.verb != "get"
    return Tool(operation.name, operation.tool, {**last, **fields, "group": GROUP}, act, required, changes=changes)


async def stacks(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the Python stacks of all ranks."""
    group = await client.attach(arguments.get("group"))
    return bounded(stacks_text(await group.stacks()), max_chars, "verdict is shorter.")


async def variables(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the variables of ranks; of busy ranks, the names only."""
    group = await client.attach(arguments.get("group"))
    ranks, prefix = arguments.get("ranks", "all"), arguments.get("prefix", "")
    code = DESCRIBE.format(prefix=prefix, max_names=MAX_NAMES)
    execution = await group.submit(code, ranks, silent=True, stop_on_error=False)
    try:
        result = await execution.peek(IDLE_SECONDS)
    finally:
        if not await execution.done():
            await execution.cancel()
    if not result.done:
        if "complete_request" not in AT_CURSOR:
            return "The ranks are busy."
        return f"The ranks are busy, so only names are known.\n{await _names(group, ranks, prefix, max_chars)}"
    result.raise_for_error()
    return bounded(variables_text(result), max_chars, "Name fewer ranks, or a prefix.")


async def _names(group: AsyncGroup, ranks: str, prefix: str, max_chars: int) -> str:
    lines = []
    for rank in ranks_in(group.model, ranks):
        found = await group.ask(AT_CURSOR["complete_request"], rank=rank, code=prefix)
        lines.append(f"rank {rank}: {', '.join(found['matches'])}")
    return bounded("\n".join(lines), max_chars, "Name one rank, or a prefix.")


async def memory(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the memory of each rank."""
    group = await client.attach(arguments.get("group"))
    if group.model["state"] in GONE_GROUP_STATES | UNREACHABLE_GROUP_STATES:
        raise JupyterDistError("group_not_ready", f"Group '{group.name}' is {group.model['state']}.")
    devices = (await client.api.ask("GET", "devices"))["devices"]
    return bounded(status_text(group.model, await group.memory(), "", devices), max_chars, "verdict is shorter.")


async def logs(client: AsyncClient, arguments: Arguments, max_chars: int) -> str:
    """Return the last records of a rank's log, or the records before a given one."""
    group = await client.attach(arguments.get("group"))
    rank = arguments.get("rank", 0)
    params = {"tail_bytes": max_chars, "before": arguments.get("before")}
    found = await client.api.ask("GET", "groups", group.id, "ranks", str(rank), "log", params=params)
    text = log_text(found["records"])
    older = f"logs(rank={rank}, before={found['first']}) shows what is before." if found["more"] else ""
    head = f"[Records {found['first']} to {found['seq']} of rank {rank}. {older}]\n" if found["records"] else ""
    return head + (bounded(text, max_chars, "Records are cut where they are longer.") or "The log is empty.")


async def interrupt(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """Interrupt running cells."""
    group = await client.attach(arguments.get("group"))
    done = await group.interrupt(arguments.get("ranks", "all"))
    if not done.interrupted:
        return "No rank was running a cell."
    text = f"Interrupted: {done.interrupted}. The ranks keep their variables."
    return f"{text} Not answering: {done.unresponsive}." if done.unresponsive else text


async def restart(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """Give all ranks new processes."""
    group = await (await client.attach(arguments["group"])).restart()
    return f"{group_line(group.model)} All variables of its ranks are gone."


async def shut_down(client: AsyncClient, arguments: Arguments, _: int) -> str:
    """End a group."""
    group = await client.attach(arguments["group"])
    killed = await group.shutdown()
    return "\n".join([f"Group '{group.name}' has ended.", *killed])


_START = {"name": {"type": "string", "maxLength": 200, "description": "A name for the group."}, **OPTIONS}
_CODE = {"type": "string", "maxLength": MAX_CODE_BYTES, "description": "Python code, as in a notebook cell."}
_RUN_OPTIONS = run_options_of_parts()
_PREFIX = {"type": "string", "maxLength": 200, "description": "Only names that start with this."}
_BEFORE = {"type": "integer", "minimum": 1, "description": "Only records before this number."}
NAMED = {**GROUP, "description": "Name or id of the group."}

TOOLS = (
    Tool("list_groups", "List all groups of torch.distributed ranks.", {}, list_groups, changes=False),
    Tool(
        "verdict",
        "Say what the ranks of a group do and what they wait for: states, collectives, dead ranks, queued cells.",
        {"group": GROUP},
        say_verdict,
        changes=False,
    ),
    Tool(
        "stacks",
        "Show the Python stack of every rank, innermost line last, equal ones once. Running cells are not disturbed.",
        {"group": GROUP},
        stacks,
        changes=False,
    ),
    *(_of_row(operation) for operation in OPERATIONS if operation.tool),
    Tool(
        "get_result",
        "Read the folded output of a cell that was run, and wait for its end if it still runs.",
        {"execution": _EXECUTION, "group": GROUP, "wait_seconds": _WAIT, "offset": OFFSET},
        get_result,
        required=("execution",),
        changes=False,
    ),
    Tool(
        "variables",
        "List the variables of ranks with their types and shapes. Runs no code of the variables' classes.",
        {"group": GROUP, "ranks": _RANKS, "prefix": _PREFIX},
        variables,
        changes=False,
    ),
    Tool("memory", "Show the memory of each rank and its device.", {"group": GROUP}, memory, changes=False),
    Tool(
        "logs",
        "Read what a rank printed, newest last, with the cells that it ran.",
        {"group": GROUP, "rank": _RANK, "before": _BEFORE},
        logs,
        changes=False,
    ),
    Tool(
        "start_group",
        "Start a group of torch.distributed ranks, which keep their variables from cell to cell.",
        _START,
        start_group,
    ),
    Tool(
        "run_code",
        "Run code on ranks, like a notebook cell. rank, world_size, device, torch and dist are defined. Equal output "
        "of ranks is shown once. A cell that is not over after wait_seconds keeps running.",
        {"code": _CODE, "ranks": _RANKS, "group": GROUP, "wait_seconds": _WAIT, **_RUN_OPTIONS},
        run_code,
        required=("code",),
        destroys=True,
    ),
    Tool(
        "interrupt",
        "Interrupt the cells that run on ranks, also in a hanging collective; variables are kept.",
        {"group": GROUP, "ranks": _RANKS},
        interrupt,
    ),
    Tool(
        "restart_group",
        "Give all ranks of a group new processes; all their variables are lost.",
        {"group": NAMED},
        restart,
        required=("group",),
        destroys=True,
    ),
    Tool(
        "shut_down_group",
        "End a group, all its processes and variables.",
        {"group": NAMED},
        shut_down,
        required=("group",),
        destroys=True,
    ),
)


def offered(*, read_only: bool) -> dict[str, Tool]:
    """Return the tools by name, also of other parts: `TOOLS` of their modules `tools`."""
    of_parts = (tool for module in find_modules("tools").modules.values() for tool in module.TOOLS)
    return {tool.name: tool for tool in (*TOOLS, *of_parts) if not (read_only and tool.changes)}
