"""Ranks whose side thread cannot answer are looked at from outside: each way of being silent is named, with its line."""

from __future__ import annotations

import pytest
from agent.harness import AgentProcess
from leaks import nothing_left
from waits import until

# By name: what is done before, what keeps the rank from answering, and how it is named.
SILENCES = {
    "computes": ("import re", "re.match(r'(a+)+$', 'a' * 60 + 'b')", "holds the GIL in C code that computes"),
    "a number": ("", "3 ** (3 * 10 ** 8)", "holds the GIL in C code that computes"),
    "stopped": ("import os, signal", "os.kill(os.getpid(), signal.SIGSTOP)", "is stopped, by a signal or a debugger"),
    "mutex": (
        "import ctypes; libc = ctypes.PyDLL(None); mutex = ctypes.create_string_buffer(64)",
        "libc.pthread_mutex_lock(mutex); libc.pthread_mutex_lock(mutex)",
        "holds the GIL in C code that waits for a lock",
    ),
    "allocator": (
        # Another thread prints malloc's statistics into a full pipe, with the lock of the arena.
        "import ctypes, os, threading, time; libc = ctypes.CDLL(None); libc.fdopen.restype = ctypes.c_void_p\n"
        "into = os.pipe()[1]; os.write(into, b'x' * 65536)\n"
        "file = libc.fdopen(into, b'w'); libc.setvbuf(ctypes.c_void_p(file), None, 2, 0)\n"
        "ctypes.c_void_p.in_dll(libc, 'stderr').value = file",
        "threading.Thread(target=libc.malloc_stats, daemon=True).start(); time.sleep(0.5)\n"
        "    while True: ctypes.PyDLL(None).malloc(5000)",
        "holds the GIL in C code that waits for a lock of the memory allocator",
    ),
    "uninterruptible": (
        "import os; os.mkfifo('fifo')",
        "os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'fifo', os.O_RDONLY, 0)])",
        "waits in the kernel for a disk, a network file system or memory",
    ),
    "sleeps": ("import ctypes", "ctypes.PyDLL(None).sleep(1000)", "holds the GIL in C code that sleeps"),
    "collects": (
        "import gc; kept = [[i] for i in range(3_000_000)]",
        "for _ in range(10_000): gc.collect()",
        "collects garbage, which holds the GIL",
    ),
    "pickles": (
        "import pickle; kept = [str(i) for i in range(3_000_000)]",
        "for _ in range(10_000): pickle.dumps(kept)",
        "holds the GIL in C code that computes",
    ),
    "destructor": (
        "import re\nclass Slow:\n    def __del__(self): re.match(r'(a+)+$', 'a' * 60 + 'b')\nslow = Slow()",
        "global slow; slow = None",
        "holds the GIL in C code that computes",
    ),
    "thread": (
        "import ctypes, re, threading\ndef other(): re.match(r'(a+)+$', 'a' * 60 + 'b')",
        "threading.Thread(target=other, daemon=True).start()\n    while True: pass",
        "has another thread that holds the GIL",
    ),
    "faults": (
        "import ctypes, mmap, os\n"
        "cold = open('cold', 'w+b'); cold.truncate(1 << 38); pages = mmap.mmap(cold.fileno(), 1 << 38)\n"
        "pages.madvise(mmap.MADV_RANDOM); at = ctypes.addressof(ctypes.c_char.from_buffer(pages))",
        "ctypes.PyDLL(None).memchr(ctypes.c_void_p(at), 1, ctypes.c_size_t(1 << 38))",
        "reads its memory back from a disk",
    ),
}
# These have no line: they cannot be signalled, or are signalled only after they have been silent for long.
_WITHOUT_LINE = {"stopped", "uninterruptible", "sleeps", "faults"}
_INNER = {"destructor": "__del__", "thread": "other"}


def _is_named(found: dict[str, set[str]], name: str) -> bool:
    """Whether a message says what the rank does, and where: on a busy machine its line may come with a later look."""
    line = "" if name in _WITHOUT_LINE else f", in {_INNER.get(name, 'native_step')}, at line "
    return any(SILENCES[name][2] in one and line in one for one in found[name])


NAMED = "have not called it yet: rank 1 holds the GIL in C code that computes, in native_step, at line 3"


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    """The messages of ranks that are silent, each in its way, and the verdict on their cell."""
    place = tmp_path_factory.mktemp("silent")
    with nothing_left(), AgentProcess(place / "g") as group:
        group.start(len(SILENCES) + 1, cwd=str(place))
        for number, (before, does, _) in enumerate(SILENCES.values(), 1):
            group.run(f"{before}\ndef native_step():\n    {does}", [number])
        cell = group.submit("dist.barrier() if rank == 0 else native_step()", range(len(SILENCES) + 1))
        found: dict[str, set[str]] = {name: set() for name in SILENCES}
        verdicts: dict[str, str] = {}  # by reason; on a busy machine a later look may know less

        def is_done() -> bool:
            group.request("ping")
            for name, rank in zip(SILENCES, group.group["ranks"][1:], strict=True):
                found[name].add(rank["message"] or "")
            if (verdict := group.executions[cell].get("verdict")) and NAMED in verdict["message"]:
                verdicts[verdict["reason"]] = verdict["message"]
            return all(_is_named(found, name) for name in SILENCES) and "busy" in verdicts

        until(
            is_done,
            lambda: (
                {name: messages for name, messages in found.items() if not _is_named(found, name)},
                group.executions[cell].get("verdict"),
            ),
        )
        yield found, verdicts["busy"]


@pytest.mark.parametrize("name", SILENCES)
def test_a_silent_rank_is_named(silent, name):
    messages, _ = silent
    assert _is_named(messages, name), messages[name]
    assert any(one.startswith("Not responding: it ") for one in messages[name] if SILENCES[name][2] in one)


def test_the_verdict_names_what_a_silent_rank_does(silent):
    _, message = silent
    assert NAMED in message


def test_a_rank_without_a_main_thread_is_dead(tmp_path):
    with nothing_left(), AgentProcess(tmp_path / "g") as group:
        group.start(2, cwd=str(tmp_path))
        cell = group.submit("import ctypes\nif rank == 1: ctypes.CDLL(None).pthread_exit(None)\ndist.barrier()", [0, 1])
        assert group.ended(cell)["state"] == "lost"
        assert "its main thread has ended" in group.group["ranks"][1]["message"]
