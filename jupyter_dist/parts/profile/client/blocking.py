"""Methods of Group that show output while a cell runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_dist.client.answers.keywords import RunOptions
from jupyter_dist.client.asynchronous.arguments import check_names
from jupyter_dist.client.blocking.asking import Ask
from jupyter_dist.client.blocking.group import Group
from jupyter_dist.client.displays.live import Show
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.wire import requests

if TYPE_CHECKING:
    from typing_extensions import Unpack


def profile(  # noqa: PLR0913  (the arguments of `run`, and `trace`)
    group: Group,
    code: str,
    ranks: str = "all",
    *,
    trace: str | None = None,
    stream: bool | Show = False,
    check: bool = False,
    ask: Ask | bool | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Run a cell under torch's profiler (%%profile) on all these ranks; `Result.profile` has the times.

    Args:
        group: The group of these ranks.
        code: The cell.
        ranks: A rank expression.
        trace: A path on this machine to write the merged trace to, for Perfetto.
        stream: As for `run`.
        check: As for `run`.
        ask: As for `run`.
        options: The options of RunOptions (docs/reference/python.md).
    """
    check_names(options, requests.RunOptions, "code", "ranks", "trace", "stream", "check", "ask")
    result = group.run(f"%%profile\n{code}", ranks, stream=stream, check=check, ask=ask, **options)
    if trace is not None:
        group.save_trace(result, trace)
    return result
