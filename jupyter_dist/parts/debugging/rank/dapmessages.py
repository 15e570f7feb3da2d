"""The messages of the Debug Adapter Protocol as they are sent, and answers that need no debugger (dap.py)."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from jupyter_dist.rank.guard.own import json, socket, threading

Message = dict[str, Any]
Reply = Callable[[Message], None]

SEND_SECONDS = 2.0

_HIDDEN = {
    *("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__annotations__", "__builtins__", "__builtin__"),
    *("__display__", "get_ipython", "exit", "quit", "open", "In", "Out", "_oh", "_dh", "_", "__", "___"),
    *("rank", "local_rank", "world_size", "device", "gpu_id", "__rank__", "__world_size__", "dist", "torch", "track"),
}


def untraced(thread: Any) -> Any:
    """Return the thread, which keeps running while debugpy has stopped all others."""
    thread.daemon = thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True
    return thread


def responder(message: Message, reply: Reply) -> Callable[..., None]:
    """Return the function that answers a request: `respond(success, message, body)`."""

    def respond(success: bool, text: str, body: Message) -> None:
        seq = message.get("seq")
        answer = {"type": "response", "seq": seq, "request_seq": seq, "command": message.get("command")}
        reply({**answer, "success": success, "body": body, **({"message": text} if text else {})})

    return respond


def send(sock: socket.socket, message: Message) -> None:
    """Send a message. Raises OSError."""
    body = json.dumps(message).encode()
    sock.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def messages(sock: socket.socket) -> Any:
    """Yield the messages of pydevd, until it closes its end."""
    data = b""
    while True:
        head, mark, rest = data.partition(b"\r\n\r\n")
        length = int(head.rpartition(b"Content-Length: ")[2].split(b"\r\n")[0]) if mark else 0
        if mark and len(rest) >= length:
            data = rest[length:]
            yield json.loads(rest[:length])
            continue
        try:
            more = sock.recv(1 << 16)
        except TimeoutError:
            continue
        if not more:
            raise EOFError
        data += more


def is_users(name: str) -> bool:
    """Whether the debugger shows a variable with this name."""
    return name not in _HIDDEN and not name.startswith("_i") and not (name[:1] == "_" and name[1:].isdigit())


def variable(name: str, value: Any) -> Message:
    """Return a variable in the form of the protocol."""
    try:
        text = repr(value)[:2000]
    except Exception as err:  # the user's code
        text = f"<repr raised {type(err).__name__}>"
    return {"name": name, "value": text, "type": type(value).__name__, "variablesReference": 0, "evaluateName": name}


def source_path(arguments: Message, folder: str) -> str:
    """Return the path of a request's source. A page names the file of a cell in the folder of the first rank."""
    path = str(arguments.get("source", {}).get("path"))
    own = os.path.join(folder, os.path.basename(path))
    return own if os.path.isfile(own) else path


def start_pydevd() -> socket.socket:
    """Import pydevd, which traces from now on, and return our end of its socket pair (main thread)."""
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    api: Any = importlib.import_module("debugpy.server.api")  # which makes pydevd importable
    pydevd: Any = importlib.import_module("pydevd")
    vars(api.ensure_logging)["ensured"] = True  # it would read the metadata of all packages
    sys.breakpointhook = api.breakpoint

    ours, theirs = socket.socketpair()
    ours.settimeout(SEND_SECONDS)
    start_client = pydevd.start_client
    pydevd.start_client = lambda *_: theirs
    try:
        pydevd.settrace(
            host="unix",
            port=0,
            suspend=False,
            wait_for_ready_to_run=False,
            patch_multiprocessing=False,
            notify_stdin=False,
        )
    finally:
        pydevd.start_client = start_client
    return ours


def stop_tracing(sock: socket.socket) -> None:
    """End pydevd, in the main thread between cells."""
    pydevd: Any = sys.modules["pydevd"]
    with contextlib.suppress(Exception):  # whatever pydevd does, the rank continues
        pydevd.stoptrace()
    sys.settrace(None)
    threading.settrace(None)
    sock.close()
