"""From a growing result to a kernel's output messages, for clients that cannot show ranks."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, TextIO

from jupyter_dist.client.bundles.bundle import item_text, rank_label
from jupyter_dist.client.bundles.outputs import Emit
from jupyter_dist.client.displays.live import TOGETHER_SECONDS, CellNews
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.models.models import METADATA_KEY, WIDGET_MIME, Output, ViewItem
from jupyter_dist.protocol.ranks import RankSet


class OutputLine(NamedTuple):
    """One line of a rank's output; of kind `display`, the id of the item that is shown there."""

    kind: str
    text: str


class StreamFile(io.TextIOBase):
    """A text file whose content is sent as a stream."""

    def __init__(self, emit: Emit, name: str) -> None:
        self._emit = emit
        self._name = name
        self._line = ""

    def write(self, text: str) -> int:
        """Send whole lines."""
        lines, end, self._line = (self._line + text).rpartition("\n")
        if end:
            self._emit("stream", {"name": self._name, "text": lines + end})
        return len(text)


# Where what is printed goes: one per thread that runs a cell, also for what the client does for it in its own thread.
PRINTED: ContextVar[StreamFile | None] = ContextVar("PRINTED", default=None)


class CellStdout(io.TextIOBase):
    """`sys.stdout` of this process: what a cell prints is that cell's, also while the thread of another still runs."""

    def __init__(self, log: TextIO) -> None:
        self._log = log

    def write(self, text: str) -> int:
        """Send the text as output of the cell that prints it; text from outside of cells goes to the kernel's log."""
        return (PRINTED.get() or self._log).write(text)

    def flush(self) -> None:
        """Flush the log; cells send whole lines at once."""
        self._log.flush()


class PlainOutputs:
    """Streams, displays and one error.

    Whole lines are sent as they come. Equal lines of several ranks are sent once, under a label of their ranks.
    """

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._sent: dict[int, list[OutputLine]] = {}
        self._label = ""
        self.pages: list[dict[str, Any]] = []  # the payload of the reply
        self._displays: dict[str, tuple[str, str, Output]] = {}  # by display id: item, ranks and what was sent
        self._news = CellNews(StreamFile(emit, "stderr"))  # type: ignore[arg-type]
        self._waiting_since: float | None = None
        self._failed: str | None = None
        self._late: LateDisplays | None = None  # once the cell has ended

    def __call__(self, result: Result) -> None:
        """Send the output that was added since the last call."""
        if self._late is not None:
            self._late.update(result, self.emit)
            return
        self._send_new(result)
        if result.done:
            self._late = LateDisplays(result, {name: (key, ranks) for name, (key, ranks, _) in self._displays.items()})

    @property
    def is_empty(self) -> bool:
        """Whether nothing was shown."""
        return not any(self._sent.values())

    def _send_new(self, result: Result) -> None:
        all_lines = {rank: list(_lines(result, rank)) for rank in result.ranks}
        if any(lines[: len(sent)] != sent for rank, lines in all_lines.items() if (sent := self._sent.get(rank))):
            self._start_over()
        new = {rank: found for rank, lines in all_lines.items() if (found := lines[len(self._sent.get(rank, ())) :])}
        if self._waits_for_others(result, len(new)):
            return
        self._sent = all_lines
        items = {str(item["id"]): item for item in result.folded}
        self._update_displays(items)
        self._send(result, new, items)
        self._news.update(result)
        self._tell_of_failure(result)

    def _start_over(self) -> None:
        """Ranks have cleared their output, or changed what was sent."""
        self.emit("clear_output", {"wait": True})
        self._sent, self._displays, self._label = {}, {}, ""

    def _waits_for_others(self, result: Result, num_said: int) -> bool:
        """Whether to wait a moment: ranks write the same output a few milliseconds apart."""
        if result.done or num_said in (0, len(result)):
            self._waiting_since = None
            return False
        now = time.monotonic()
        self._waiting_since = self._waiting_since or now
        if now - self._waiting_since < TOGETHER_SECONDS:
            return True
        self._waiting_since = None
        return False

    def _send(self, result: Result, new: dict[int, list[OutputLine]], items: dict[str, ViewItem]) -> None:
        """Send equal lines once, up to where ranks differ; then the lines of each set of ranks separately."""
        same = sum(1 for _ in itertools.takewhile(lambda row: len(set(row)) == 1, zip(*new.values(), strict=False)))
        if same:
            self._send_lines(result, str(RankSet(new)), next(iter(new.values()))[:same], items)
        parted: dict[OutputLine, dict[int, list[OutputLine]]] = {}
        for rank, lines in new.items():
            if len(lines) > same:
                parted.setdefault(lines[same], {})[rank] = lines[same:]
        for rest in parted.values():
            self._send(result, rest, items)

    def _send_lines(self, result: Result, ranks: str, lines: list[OutputLine], items: dict[str, ViewItem]) -> None:
        for kind, group in itertools.groupby(lines, lambda line: line.kind):
            found = [line for line in group if not self._is_page(line, items)]
            if not found:
                continue
            label = self._labelled(result, ranks)
            if kind != "display":
                self.emit("stream", {"name": kind, "text": label + "".join(line.text for line in found)})
                continue
            if label:
                self.emit("stream", {"name": "stdout", "text": label})
            for line in found:
                self._display(result, ranks, items[line.text])

    def _is_page(self, line: OutputLine, items: dict[str, ViewItem]) -> bool:
        """Whether a display is for the client's pager; it is kept for the reply."""
        output = items[line.text]["output"] if line.kind == "display" else {}
        is_page = bool(output.get("metadata", {}).get(METADATA_KEY, {}).get("pager"))
        if is_page:
            self.pages.append({"source": "page", "data": output["data"], "start": 0})
        return is_page

    def _labelled(self, result: Result, ranks: str) -> str:
        """Return a label, unless the one before still holds, or there is one rank only."""
        if ranks == self._label or result.group["world_size"] == 1:
            return ""
        self._label = ranks
        return f"[{rank_label(ranks)}]\n"

    def _display(self, result: Result, ranks: str, item: ViewItem) -> None:
        output, display_id = item["output"], f"jupyter-dist-{result.id}-{item['id']}-{ranks}"
        self._displays[display_id] = (str(item["id"]), ranks, output)
        content = _content(output, ranks, display_id)
        if output["output_type"] == "execute_result":
            content["execution_count"] = result.execution["execution_count"]
        self.emit(output["output_type"], content)

    def _update_displays(self, items: dict[str, ViewItem]) -> None:
        for display_id, (key, ranks, output) in self._displays.items():
            item = items.get(key)
            if item is not None and "output" in item and item["output"] != output:
                self._displays[display_id] = (key, ranks, item["output"])
                self.emit("update_display_data", _content(item["output"], ranks, display_id))

    def _tell_of_failure(self, result: Result) -> None:
        """Name an error while other ranks still run: its traceback comes at the end, which they may never reach."""
        errors = result.errors
        text = "; ".join(f"{rank_label(str(rank))}: {error}" for rank, error in errors.items())
        if text and self._failed is None and not result.done:
            self._failed = ""  # most others end in a moment
        elif text and self._failed == "" and not result.done:
            self._failed = text
            self.emit("stream", {"name": "stderr", "text": f"{text} (other ranks are still running)\n"})


class LateDisplays:
    """The displays of a cell that has ended, which later cells may update. Ranks that were equal may differ then."""

    def __init__(self, result: Result, sent: dict[str, tuple[str, str]]) -> None:
        self._places = {}  # by display id: its ranks, and which of their displays it is
        for display_id, (key, ranks) in sent.items():
            of_rank = _displays_of(result, RankSet.from_text(ranks)[0])
            place = next((place for place, item in enumerate(of_rank) if str(item["id"]) == key), None)
            if place is not None:
                self._places[display_id] = ranks, place
        self._shown = {display_id: self._found(result, display_id) for display_id in self._places}

    def update(self, result: Result, emit: Emit) -> None:
        """Send the displays that have changed."""
        for display_id, shown in self._shown.items():
            found = self._found(result, display_id)
            if found and found != shown:
                self._shown[display_id] = found
                emit("update_display_data", _content(joined(found), self._places[display_id][0], display_id))

    def _found(self, result: Result, display_id: str) -> dict[str, Output]:
        """Return the current outputs in the place of this display, by ranks."""
        ranks, place = self._places[display_id]
        found: list[tuple[int, Output]] = []
        for rank in RankSet.from_text(ranks):
            of_rank = _displays_of(result, rank)
            if place < len(of_rank):
                found.append((rank, of_rank[place]["output"]))
        outputs = [output for number, (_, output) in enumerate(found) if output not in [o for _, o in found[:number]]]
        return {str(RankSet(rank for rank, output in found if output == each)): each for each in outputs}


def _displays_of(result: Result, rank: int) -> list[ViewItem]:
    """Return a rank's items that are neither text nor an error."""
    items = [item for item in result.folded if "output" in item and rank in RankSet.from_text(item["ranks"])]
    return [item for item in items if item["output"]["output_type"] not in ("stream", "error")]


def joined(outputs: dict[str, Output]) -> Output:
    """Merge the outputs of all ranks into one; where they differ, each stands under a label."""
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    data: dict[str, Any] = {
        "text/plain": "\n".join(
            f"[{rank_label(ranks)}]\n{''.join(output['data'].get('text/plain', ''))}"
            for ranks, output in outputs.items()
        )
    }
    if all("text/html" in output["data"] for output in outputs.values()):
        data["text/html"] = "".join(
            f"<div><b>{rank_label(ranks)}</b></div>{''.join(output['data']['text/html'])}"
            for ranks, output in outputs.items()
        )
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _content(output: Output, ranks: str, display_id: str) -> dict[str, Any]:
    metadata = {**output.get("metadata", {}), METADATA_KEY: {"ranks": ranks}}
    # Comms of ranks do not go through this kernel: other clients than our page would show a broken view.
    data = {mime: value for mime, value in output["data"].items() if mime != WIDGET_MIME or len(output["data"]) == 1}
    return {"data": data, "metadata": metadata, "transient": {"display_id": display_id}}


def _lines(result: Result, rank: int) -> Iterator[OutputLine]:
    """Yield a rank's lines and displays, up to the last line that is complete; all of them at the end."""
    kind, line = "stdout", ""
    for item in result.folded:
        if rank not in RankSet.from_text(item["ranks"]):
            continue
        if "elided" in item and not result.done:
            return  # what comes after it still changes
        output = item.get("output", {"output_type": "stream", "name": "stdout", "text": ""})
        is_display = output["output_type"] != "stream"
        if line and (is_display or output["name"] != kind):
            yield OutputLine(kind, line + "\n")
            line = ""
        if is_display:
            if output["output_type"] != "error":
                yield OutputLine("display", str(item["id"]))
            continue
        kind = output["name"]
        *complete, line = (line + (item_text(item) if "elided" in item else "".join(output["text"]))).split("\n")
        yield from (OutputLine(kind, text + "\n") for text in complete)
    if line and result.done:
        yield OutputLine(kind, line + "\n")


def error_content(result: Result) -> dict[str, Any] | None:
    """Return the content of a failed cell's error message: the first rank's traceback, and the other failed ranks."""
    if result.ok:
        return None
    failed = sorted(
        (item for item in result.folded if "output" in item and item["output"]["output_type"] == "error"),
        key=lambda item: item["seq"],
    )
    if (about := result.execution["error"]) is not None or not failed:
        message = str(JupyterDistError.from_dict(about)) if about else f"The cell was {result.state}."
        return {"ename": "RankError", "evalue": message, "traceback": [message, *_traceback(result, failed)]}
    first = failed[0]["output"]
    return {"ename": first["ename"], "evalue": first["evalue"], "traceback": _traceback(result, failed)}


def _traceback(result: Result, failed: list[ViewItem]) -> list[str]:
    if not failed:
        return []
    first, *others = failed
    label = [] if result.group["world_size"] == 1 else [f"\x1b[0;31m[{rank_label(first['ranks'])}]\x1b[0m"]
    also = [f"[{rank_label(each['ranks'])}] {each['output']['ename']}: {each['output']['evalue']}" for each in others]
    return [*label, *first["output"]["traceback"], *also]
