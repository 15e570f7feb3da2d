"""A real kernel with our magics, and what came of its cells."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from jupyter_client.manager import start_new_kernel
from waits import PATIENCE, PATIENCE_WITH_A_START

from jupyter_dist.client.bundles.bundle import without_ansi
from jupyter_dist.protocol.models.models import PART_MIME, RANKS_MIME


class Cell:
    """What came of a cell."""

    def __init__(self):
        self.text = ""  # of the kernel itself
        self.displays = []
        self.display_ids = []
        self.parts = {}  # outputs that the bundle names, by number
        self.updates = 0
        self.of_earlier = {}  # updates of displays of earlier cells, by display id
        self.results = []
        self.clears = 0
        self.error = None
        self.ename = None
        self.asked = []  # prompts and whether they were for passwords
        self.status = ""
        self.number = None  # of its prompt
        self.pager = ""  # what `%magic?` shows

    @property
    def bundle(self):
        return self.displays[-1][RANKS_MIME]

    @property
    def said(self):
        return [(item["ranks"], _text(item.get("output") or self.parts[item["part"]])) for item in self.bundle["items"]]


def _text(output):
    mark = output.get("data", {}).get(PART_MIME, {})
    if "error" in mark:
        return mark["error"]["ename"]
    return output.get("text") or output.get("data", {}).get("text/plain") or output.get("ename")


class Kernel:
    def __init__(self, manager, client):
        self.manager = manager
        self.client = client

    def run(self, code, after=None, answers=()):
        """Run a cell; with `answers`, in order, as a frontend that takes questions."""
        cell, answers = Cell(), list(answers)
        request = self.client.execute(code, allow_stdin=bool(answers))
        if after is not None:
            after()
        while True:
            if answers:
                question = self.client.get_stdin_msg(timeout=PATIENCE)["content"]
                cell.asked.append((question["prompt"], question["password"]))
                self.client.input(answers.pop(0))
            message = self.client.get_iopub_msg(timeout=PATIENCE_WITH_A_START)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            _take(cell, message["msg_type"], message["content"])
        reply = self.reply(request)
        cell.status, cell.number = reply["status"], reply["execution_count"]
        cell.pager = "".join(
            page["data"]["text/plain"] for page in reply.get("payload", []) if page["source"] == "page"
        )
        return cell

    def bundles(self, code):
        """Run a cell, and yield each bundle as it comes."""
        request = self.client.execute(code)
        is_over = False
        while not is_over:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            kind, content = message["msg_type"], message["content"]
            if message["parent_header"].get("msg_id") == request:
                is_over = kind == "status" and content["execution_state"] == "idle"
                if RANKS_MIME in content.get("data", {}):
                    yield content["data"][RANKS_MIME]
        self.reply(request)

    def reply(self, request):
        """The answer to that request: a kernel that was asked again and again whether it is ready has more to say."""
        while (message := self.client.get_shell_msg(timeout=PATIENCE))["parent_header"].get("msg_id") != request:
            pass
        return message["content"]

    def complete(self, code, cursor_pos=None):
        """All that the code up to the cursor can become."""
        content = self.reply(self.client.complete(code, cursor_pos))
        assert content["status"] == "ok"
        return [code[: content["cursor_start"]] + match for match in content["matches"]]

    def inspect(self, code, detail=0):
        """What a client shows for the end of the code; None if nothing is known."""
        content = self.reply(self.client.inspect(code, detail_level=detail))
        return without_ansi(content["data"]["text/plain"]) if content["found"] else None

    def types(self, code):
        """What a completer shows beside the names."""
        return self.reply(self.client.complete(code))["metadata"]["_jupyter_types_experimental"]


def _take(cell, kind, content):
    if kind == "stream":
        cell.text += content["text"]
    elif kind == "display_data" and PART_MIME in content["data"]:
        cell.parts[content["data"][PART_MIME].get("part")] = content
    elif kind == "display_data":
        cell.displays.append(content["data"])
        cell.display_ids.append(content["transient"].get("display_id"))
    elif kind == "update_display_data":
        cell.updates += 1
        display_id = content["transient"]["display_id"]
        if display_id in cell.display_ids:
            cell.displays[cell.display_ids.index(display_id)] = content["data"]
        else:
            cell.of_earlier[display_id] = content["data"]
    elif kind == "execute_result":
        cell.results.append(content["data"])
    elif kind == "clear_output":
        cell.clears += 1
    elif kind == "error":
        cell.ename = content["ename"]
        cell.error = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(content["traceback"]))


@contextlib.contextmanager
def kernel_of(notebook: Path, **environment: str) -> Iterator[Kernel]:
    """A kernel of that notebook with the magics loaded; its group ends with it."""
    env = {**os.environ, "JPY_SESSION_NAME": str(notebook), **environment}
    manager, blocking = start_new_kernel(cwd=str(notebook.parent), env=env)
    kernel = Kernel(manager, blocking)
    try:
        assert kernel.run("%load_ext jupyter_dist").status == "ok"
        yield kernel
        kernel.run("%dist_shutdown")
    finally:
        blocking.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
