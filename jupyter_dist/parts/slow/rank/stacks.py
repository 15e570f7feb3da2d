"""Finds the activity of the main thread by the files of its frames, and the line of the user. Side thread, 20 us."""

from __future__ import annotations

from types import FrameType
from typing import Any, Literal, NamedTuple

from jupyter_dist.rank.collectives.diagnosis import lines, mainthread
from jupyter_dist.rank.guard import folders
from jupyter_dist.rank.guard.frames import of_main_thread
from jupyter_dist.rank.guard.own import linecache, os

MAX_FRAMES = 200

# The strongest evidence first: a DataLoader waits for its workers by functions of `multiprocessing`, but for input.
ACTIVITIES = (
    "objects",
    "wait",
    "compile",
    "workers",
    "input",
    "save",
    "print",
    "backward",
    "optimizer",
    "unused",
    "ddp",
)
RUN = "run"  # any other code of the user
_OBJECTS, _INPUT, _UNUSED, _DDP = (ACTIVITIES.index(name) for name in ("objects", "input", "unused", "ddp"))
_C10D = os.path.join(mainthread.TORCH, "distributed", "distributed_c10d.py")
_PICKLES = frozenset({"_object_to_tensor", "_tensor_to_object"})
# The functions of DDP that walk through the outputs of its model.
_LOOKS_FOR_UNUSED = frozenset(
    {"_find_tensors", "_post_forward", "_tree_flatten_with_rref", "_tree_unflatten_with_rref"}
)
_FILES: tuple[tuple[str, str], ...] = tuple(
    (os.path.join(root, *path.split("/")), activity)
    for root, path, activity in (
        (mainthread.TORCH, "distributed/checkpoint/", "save"),
        (mainthread.TORCH, "distributed/distributed_c10d.py", "wait"),
        (folders.RANK, "collectives/interruptible/waits.py", "wait"),
        (folders.RANK, "collectives/interruptible/storewaits.py", "wait"),
        # Not all of their folders: functions of theirs are in the stack of compiled code that runs.
        (mainthread.TORCH, "_dynamo/convert_frame.py", "compile"),
        (mainthread.TORCH, "_inductor/compile_fx.py", "compile"),
        (mainthread.TORCH, "utils/data/", "input"),
        (mainthread.TORCH, "serialization.py", "save"),
        (mainthread.TORCH, "_tensor_str.py", "print"),
        (folders.RANK, "output/", "print"),
        (mainthread.TORCH, "autograd/graph.py", "backward"),
        (mainthread.TORCH, "optim/", "optimizer"),
        (mainthread.TORCH, "nn/parallel/distributed.py", "ddp"),
    )
)
# What lines call for one thing besides training: weight.norm(), clip_grad_norm_().
_LIKE_C = tuple(
    os.path.join(mainthread.TORCH, *path.split("/")) for path in ("_tensor.py", "functional.py", "nn/utils/")
)
# With torch.autograd.set_detect_anomaly(True) each operation of a forward pass keeps its stack.
_KEEPS_STACKS = os.path.join(mainthread.TORCH, "fx", "traceback.py")
_known: dict[str, tuple[bool, int]] = {}  # by file: whether it is the user's, and the number of its activity
_NONE = len(ACTIVITIES)


class Line(NamedTuple):
    """A line of the user's code."""

    file: str
    number: int
    function: str

    @property
    def code(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.number).strip()[:200]


# What a line of the user's runs: Python code, functions of torch, or a function in C that it calls itself.
Runs = Literal["python", "torch", "c"]


class Doing(NamedTuple):
    """The activity of a thread, the user's line, and the inner one of a dataset that a loader calls."""

    activity: str
    line: Line
    inner: Line | None = None
    cell: str = ""  # the file of the outermost code of a cell
    is_blocked: bool = False  # in a system call: it waits for a file, a socket or a time
    outer: Line | None = None  # the user's line that has called the function of this one
    runs: Runs = "c"
    maybe: tuple[Line, ...] = ()  # lines before that may have taken the time in its place


def doing(namespace: dict[str, Any], waited: bool = False) -> Doing | None:
    """Return the activity of the main thread; None while no code of a cell runs. `waited`: for the GIL, before."""
    return doing_in(of_main_thread(), namespace, waited)


def doing_in(frame: FrameType | None, namespace: dict[str, Any], waited: bool = False) -> Doing | None:
    """Return the activity of the thread that has this innermost frame."""
    if frame is None:
        return None
    frame, number = lines.spends(frame)
    walk = _Walk(frame, number)
    maybe = lines.may_have_spent(frame, number) if waited else []
    innermost = frame.f_code
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        walk.take(frame, namespace)
        frame = frame.f_back
    if walk.line is None or not walk.cell:
        return None
    activity = RUN if walk.best == _NONE else ACTIVITIES[walk.best]
    earlier = tuple(Line(innermost.co_filename, number, innermost.co_name) for number in maybe)
    return Doing(activity, walk.line, walk.inner, walk.cell, outer=walk.outer, runs=walk.runs, maybe=earlier)


def users_line(frame: FrameType | None) -> Line | None:
    """Return the innermost line of the user's code."""
    found = lines.users_frame(frame)
    return None if found is None else Line(found.f_code.co_filename, lines.line_of(found), found.f_code.co_name)


class _Walk:
    """What is found on the way from the innermost frame outwards."""

    def __init__(self, innermost: FrameType, number: int) -> None:
        """`number` is the line of the innermost frame."""
        self.best = _NONE
        self.line: Line | None = None
        self.inner: Line | None = None
        self.outer: Line | None = None
        self.runs: Runs = "c"
        self.cell = ""
        self._innermost, self._number = innermost, number
        self._below: FrameType | None = None
        self._keeps_stacks = False

    def take(self, frame: FrameType, namespace: dict[str, Any]) -> None:
        """Note the next frame."""
        file = frame.f_code.co_filename
        known = _known.get(file)
        is_users, activity = known if known is not None else _classify(file)
        if is_users:
            self._take_users(frame)
            if frame.f_globals is namespace:
                self.cell = file
        elif activity == _INPUT:  # the loader calls the user's dataset: the loop is outside of it
            self.best = min(self.best, _INPUT - (frame.f_code.co_name == "__init__"))
            self.inner = self.inner if self.line is None else self.line
            self.line = self.outer = None
        elif file == _C10D and frame.f_code.co_name in _PICKLES:
            self.best = _OBJECTS
        elif file == _KEEPS_STACKS:
            self._keeps_stacks = True
        elif activity < self.best:
            self.best = min(self.best, activity if activity != _DDP else _of_ddp(frame, self._innermost))
        self._below = frame

    def _take_users(self, frame: FrameType) -> None:
        code = frame.f_code
        if self.line is None:
            number = self._number if frame is self._innermost else lines.line_of(frame)
            self.line = Line(code.co_filename, number, code.co_name)
            self.runs = "python" if self._keeps_stacks else _runs(frame, self._below)
        elif self.outer is None:
            self.outer = Line(code.co_filename, lines.line_of(frame), code.co_name)


def _runs(frame: FrameType, below: FrameType | None) -> Runs:
    """Return the kind of code that the user's line of this frame runs: Python, or a function in C."""
    if below is None:
        return "c" if lines.is_in_call(frame) else "python"
    file = below.f_code.co_filename
    if file.startswith(_LIKE_C):
        return "c"
    return "torch" if file.startswith((mainthread.TORCH, folders.PACKAGE)) else "python"


def _of_ddp(frame: FrameType, innermost: FrameType | None) -> int:
    if frame.f_code.co_name in _LOOKS_FOR_UNUSED:
        return _UNUSED
    return _DDP if frame is innermost else _NONE  # else it has called the model's own code


def _classify(file: str) -> tuple[bool, int]:
    activity = next((ACTIVITIES.index(name) for path, name in _FILES if file.startswith(path)), _NONE)
    if len(_known) > 20_000:  # cells that make code
        _known.clear()
    found = _known[file] = activity == _NONE and lines.is_users(file), activity
    return found
