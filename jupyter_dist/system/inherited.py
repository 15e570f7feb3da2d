"""The attributes a new process inherits besides arguments, environment, working folder and descriptors.

A process may be forked from another process than its parent only if both would pass on equal attributes.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

_SELF = Path("/proc/self")
# Lines of /proc/self/status that a child begins with.
_STATUS = re.compile(
    r"^(?:[UG]id|Groups|Cap\w+|NoNewPrivs|Seccomp\w*|Sig(?:Blk|Ign)|(?:Cpus|Mems)_allowed|Umask|THP_enabled):.*$", re.M
)
# Credentials of a Jupyter server.
_SECRET_NAMES = re.compile(
    r"JUPYTER_TOKEN|JPY_\w*TOKEN|JPY_COOKIE_SECRET|JUPYTERHUB_\w*TOKEN|JUPYTER\w*_(TOKEN|PASSWORD|SECRET)"
    r"|CONFIGPROXY_AUTH_TOKEN|JPY_PARENT_PID|JPY_SESSION_NAME"
)
# With these, packages start no thread when they are imported: a process with threads must not fork ranks.
_WITHOUT_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    # pandas, and with it scikit-learn, imports pyarrow, one of whose allocators starts a thread that frees memory.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
_FILES = (
    "limits",
    "cgroup",
    "oom_score_adj",
    "coredump_filter",
    "personality",
    "timerslack_ns",
    "attr/current",
    "loginuid",
    "sessionid",
)
# Variables that name a shell, a terminal, a session or a running test, not what a program should do. A process that has
# imported modules under other values of these is as good as a new one; it gets the right values before it runs a cell.
# Variables of Jupyter and of this package are for servers and clients. The last two lines are variables that kernels
# set for themselves: groups of kernels share the import with groups of programs and of the server.
_OF_A_SESSION = re.compile(
    r"_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|GPG_TTY|TERM_\w+|SSH_\w+|XDG_SESSION_ID|DBUS_SESSION_BUS_ADDRESS"
    r"|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|STY|TMUX\w*|VSCODE_\w+|JPY_\w+|KERNEL_\w+|PYTEST_\w+"
    r"|JUPYTER_(?:(?:RUNTIME|CONFIG|DATA)_DIR|PATH)|JUPYTER_DIST_(?:GROUP|RANKS|PREPARE|GRACE_SECONDS)"
    r"|TERM|CLICOLOR|CLICOLOR_FORCE|FORCE_COLOR|PAGER|GIT_PAGER|PYDEVD_USE_FRAME_EVAL"
    r"|MPLBACKEND"  # which ranks apply to a matplotlib that was imported before (rank/cells/shell.py)
)


def without_threads(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which imports start no thread; values that are set stay."""
    return {name: environment.get(name, value) for name, value in _WITHOUT_THREADS.items()}


def inherited() -> dict[str, str]:
    """Return the attributes that children of this process inherit; equal dictionaries mean equal children."""
    found = {"status": "\n".join(_STATUS.findall((_SELF / "status").read_text()))}
    for name in _FILES:
        with contextlib.suppress(OSError):  # this kernel has no such file, or hides it
            found[name] = (_SELF / name).read_text(errors="replace")
    for path in (*(_SELF / "ns").iterdir(), _SELF / "root"):
        with contextlib.suppress(OSError):
            found[path.name] = os.readlink(path)
    found["nice"] = str(os.getpriority(os.PRIO_PROCESS, 0))
    with contextlib.suppress(OSError):
        found["scheduler"] = f"{os.sched_getscheduler(0)} {os.sched_getparam(0)}"
    return found


def is_of_a_session(variable: str) -> bool:
    """Whether an environment variable only describes where a program was started."""
    return _OF_A_SESSION.fullmatch(variable) is not None


def without_credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables for a group: ranks run arbitrary code, and others read their output."""
    return {name: value for name, value in environ.items() if not _SECRET_NAMES.fullmatch(name)}
