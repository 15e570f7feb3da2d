"""A page: headless Chromium on JupyterLab with the sidebar open, spoken to by its DevTools socket."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import websocket

from .driver import REPOSITORY
from .ours import Server
from .processes import descendants, kill, wait_until

EXTENSION = REPOSITORY / "jupyter_dist" / "labextension"
COLLABORATION = ("@jupyter/collaboration-extension", "@jupyter/docprovider-extension")
_OPEN_SIDEBAR = (
    "jupyterapp.restored.then(() => jupyterapp.commands.execute('jupyter-dist:show-sidebar')).then(() => 'shown')"
)
_RESTORED = "jupyterapp.restored.then(() => 'restored')"
_HAS_EXTENSION = "jupyterapp.commands.hasCommand('jupyter-dist:show-sidebar')"
_NEXT_FRAMES = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
_MARK = "jpd-tasks"
_COUNT_RANKS = "document.querySelectorAll('[class*=jpd-Rank], .jpd-NodeRanks').length"


def chromium() -> str | None:
    """A Chromium, if there is one, and something to show in it."""
    if not (EXTENSION / "package.json").exists():
        return None
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def offer_extension(server: Server) -> None:
    """Let this server's JupyterLab find the extension as it was built here."""
    place = server.home / "data" / "labextensions"
    place.mkdir(parents=True, exist_ok=True)
    (place / "jupyter-dist").symlink_to(EXTENSION)


def server_for_pages(executable: str | None) -> Server:
    """A server whose JupyterLab has the extension; where there is no Chromium, one without pages."""
    server = Server("jupyterlab" if executable else "jupyter_server")
    if executable:
        offer_extension(server)
    return server


def enable_extension(server: Server, enabled: bool) -> None:
    """Whether pages that are opened from now on have the extension."""
    place = server.home / "config" / "labconfig"
    place.mkdir(parents=True, exist_ok=True)
    disabled = {"jupyter-dist": not enabled, **dict.fromkeys(COLLABORATION, True)}
    (place / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))


class Page:
    """One browser with one tab: with the sidebar open unless told otherwise, or `bare`, without the extension."""

    def __init__(self, server: Server, executable: str, *, bare: bool = False, sidebar: bool = True) -> None:
        self._server = server
        self._executable = executable
        self._bare = bare
        self._sidebar = sidebar
        self._profile = tempfile.TemporaryDirectory(prefix="jdb-", ignore_cleanup_errors=True)
        self._ids = 0
        self.events: list[Any] = []

    def __enter__(self) -> Page:
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-port=0",
            "--remote-allow-origins=*",
        ]
        flags += [f"--user-data-dir={self._profile.name}", "--no-first-run", "--window-size=1400,900"]
        # In the default workspace, a page opens again what the page before it had open.
        place = f"lab/workspaces/{secrets.token_hex(4)}?token={self._server.token}"
        command = [self._executable, *flags, f"http://127.0.0.1:{self._server.port}/{place}"]
        quiet = subprocess.DEVNULL
        enable_extension(self._server, not self._bare)
        self._process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def processes(self) -> list[int]:
        """All of the browser's processes."""
        return [self._process.pid, *descendants(self._process.pid)]

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, or of its promise. Raises RuntimeError if it throws."""
        parameters = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self.ask("Runtime.evaluate", **parameters)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"in the page: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str, code: int, *, shift: bool = False, ctrl: bool = False) -> None:
        """Press and release a key, as a keyboard does: the browser handles it like any other input."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 * shift + 2 * ctrl}
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call a method of the DevTools protocol; events that come meanwhile are kept in `events`."""
        self._ids += 1
        self._socket.send(json.dumps({"id": self._ids, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv())).get("id") != self._ids:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def tasks(self, expression: str, settle_seconds: float) -> list[float]:
        """Evaluate; return the CPU milliseconds of each task of the page's main thread, until so long after it."""
        categories = ["toplevel", "disabled-by-default-devtools.timeline", "blink.user_timing"]
        self.ask("Tracing.start", traceConfig={"includedCategories": categories})
        self.evaluate(f"void performance.mark('{_MARK}')")
        self.evaluate(expression)
        time.sleep(settle_seconds)
        self.evaluate(_NEXT_FRAMES)
        self.events.clear()
        self.ask("Tracing.end")
        return _tasks_of(self._traced())

    def _traced(self) -> list[Any]:
        events, self.events = self.events, []
        while not events or events[-1].get("method") != "Tracing.tracingComplete":
            events.append(json.loads(self._socket.recv()))
        parts = [event["params"]["value"] for event in events if event["method"] == "Tracing.dataCollected"]
        return [event for part in parts for event in part]

    def _open(self) -> None:
        port_file = Path(self._profile.name, "DevToolsActivePort")
        wait_until(lambda: port_file.exists() and port_file.read_text().count("\n") > 0, 30, "Chromium starts", 0.1)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as response:
            tab = next(target for target in json.load(response) if target["type"] == "page")
        self._socket = websocket.create_connection(tab["webSocketDebuggerUrl"], timeout=60)
        wait_until(lambda: self.evaluate("typeof jupyterapp") == "object", 60, "JupyterLab loads", 0.25)
        if self._bare:
            wait_until(lambda: self.evaluate(_RESTORED) == "restored", 30, "JupyterLab is restored", 0.25)
            assert not self.evaluate(_HAS_EXTENSION)
            return
        if not self._sidebar:
            wait_until(lambda: self.evaluate(_RESTORED) == "restored", 30, "JupyterLab is restored", 0.25)
            return
        wait_until(lambda: self.evaluate(_OPEN_SIDEBAR) == "shown", 30, "the sidebar opens", 0.25)
        wait_until(lambda: self.evaluate(_COUNT_RANKS) > 0, 30, "the sidebar shows ranks", 0.25)

    def _close(self) -> None:
        pids = self.processes()
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        kill(pids[1:])
        self._profile.cleanup()


def _tasks_of(trace: list[Any]) -> list[float]:
    """The CPU milliseconds of the outermost tasks in the thread that has the mark, from the mark on."""
    mark = next(event for event in trace if event["name"] == _MARK)
    thread = (mark["pid"], mark["tid"])
    tasks = [
        event
        for event in trace
        if event["ph"] == "X" and event["name"].endswith("RunTask") and (event["pid"], event["tid"]) == thread
    ]
    took, end = [], mark["ts"]
    for task in sorted(tasks, key=lambda task: (task["ts"], -task["dur"])):
        if task["ts"] >= end:
            took.append(task.get("tdur", 0) / 1000)
            end = task["ts"] + task["dur"]
    return took
