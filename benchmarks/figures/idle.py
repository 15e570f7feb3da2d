"""What an idle group costs: with no page open, from a kernel that has loaded the magics, and with the sidebar visible.

JupyterLab asks its server for much by itself; what a page costs without our extension is measured in the same
run and taken away.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.browser import Page, chromium, server_for_pages
from benchmarks.driver import Driver
from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.processes import command_line, descendants, scheduled_seconds, wakeups
from benchmarks.tables import Table

WINDOW_SECONDS = 5.0
SETTLE_SECONDS = 5.0
WINDOWS = 4
PAGES = 2  # of each kind, in turns
START_SECONDS = 120
MOST_PERCENT, MOST_PAGE_PERCENT = 0.3, 1.0
BARE = ", page without the extension"
Processes = dict[str, list[int]]


def measure(options: Options) -> list[Table]:
    """One table per situation."""
    if not options.ours:
        return []
    executable = chromium()
    alone = Table(f"Idle: {options.ranks} idle ranks, no page open", "% of a core", "")
    what = "a browser with the sidebar open" if executable else "a client that follows devices and memory"
    watched = Table(f"Idle: {options.ranks} idle ranks, {what}", "% of a core", "")
    with ExitStack() as stack:
        server = stack.enter_context(server_for_pages(executable))
        client = Client(server)
        group = client.start_group(options.ranks)["id"]
        client.wait_ready(group)
        server.wait_for_warm_agent()
        _windows(alone, lambda: _ours(server))
        if executable:
            for _ in range(PAGES):
                with Page(server, executable, bare=True) as page:
                    _windows(watched, lambda: _bare(server, page))
                with Page(server, executable) as page:
                    _windows(watched, lambda: {**_ours(server), "the browser": page.processes()})
        else:
            client.open_channel()
            client.subscribe("devices")
            client.subscribe("memory", group=group)
            threading.Thread(target=_listen, args=(client,), daemon=True).start()
            _windows(watched, lambda: _ours(server))
    for table in (alone, watched):
        _judge(table)
    if executable:
        _judge_page(watched)
    magics = Table(f"Idle: {options.ranks} idle ranks of a kernel that has loaded the magics", "% of a core", "")
    _from_a_kernel(magics, options.ranks)
    for table in (alone, magics):
        _judge_group(table)
    return [alone, magics, watched]


def _from_a_kernel(table: Table, ranks: int) -> None:
    """The group of a notebook without JupyterLab's extension: a private server, started by the kernel."""
    cells = ["%load_ext jupyter_dist", f"%dist_init -n {ranks} --accelerator cpu", "%%rank all\nx = 1"]
    with Driver("kernel", sys.executable) as driver:
        driver.ask("start", START_SECONDS, cells=cells, patience=START_SECONDS)
        _windows(table, _of_kernel)


def _of_kernel() -> Processes:
    found: Processes = {"the kernel": [], "server": [], "agents and zygotes": [], "ranks": []}
    for pid in descendants(os.getpid()):
        command = command_line(pid)
        below = descendants(pid)
        if "ipykernel_launcher" in command:
            found["the kernel"].append(pid)
        elif "jupyter_dist.server" in command:
            found["server"].append(pid)
        elif "boot.py zygote" in command and not any("boot.py zygote" in command_line(child) for child in below):
            found["ranks"].append(pid)
        elif "boot.py" in command:
            found["agents and zygotes"].append(pid)
    return found


def _judge_group(table: Table) -> None:
    used = {row.system: row.minimum for row in table.rows if row.system != "the kernel"}
    parts = ", ".join(f"{name} {percent:.2f}" for name, percent in used.items())
    total = sum(used.values())
    table.aim(f"all together under {MOST_PERCENT:g} % of a core: {total:.2f} % ({parts})", total < MOST_PERCENT)


def _judge_page(table: Table) -> None:
    """Ours is what the browser does more than for a page without the extension."""
    with_us, bare = table.row("the browser"), table.row("the browser" + BARE)
    used, least = with_us.median - bare.median, with_us.minimum - bare.minimum
    text = f"a page under {MOST_PAGE_PERCENT:g} % of a core: {used:.2f} % (least less least {least:.2f} %), "
    table.aim(f"{text}besides {bare.median:.2f} % without the extension", min(used, least) < MOST_PAGE_PERCENT)


def _judge(table: Table) -> None:
    """Ours is what the server does more than for a bare page, and all that agents do."""
    bare = table.row("server" + BARE).median if any(row.system == "server" + BARE for row in table.rows) else 0.0
    used = table.row("server").median - bare + table.row("agents and zygotes").median
    without = f" (without the {bare:.2f} % that the server does for JupyterLab alone)" if bare else ""
    table.aim(f"server and agent under 1 % of a core: {used:.2f} %{without}", used < 1)


def _ours(server: Server) -> Processes:
    agents = server.agents()
    below = [pid for agent in agents for pid in descendants(agent)]
    parents = {pid: len(descendants(pid)) for pid in below}
    ranks = [pid for pid in below if any(pid in descendants(zygote) for zygote, size in parents.items() if size)]
    return {"server": [server.pid], "agents and zygotes": [*agents, *(set(below) - set(ranks))], "ranks": ranks}


def _bare(server: Server, page: Page) -> Processes:
    return {"server" + BARE: [server.pid], "the browser" + BARE: page.processes()}


def _windows(table: Table, processes: Callable[[], Processes]) -> None:
    time.sleep(SETTLE_SECONDS)
    named = processes()
    woken, since = {name: sum(map(wakeups, pids)) for name, pids in named.items()}, time.perf_counter()
    for _ in range(WINDOWS):
        before = {name: sum(map(scheduled_seconds, pids)) for name, pids in named.items()}
        began = time.perf_counter()
        time.sleep(WINDOW_SECONDS)
        elapsed = time.perf_counter() - began
        for name, pids in named.items():
            table.row(name).values.append(100 * (sum(map(scheduled_seconds, pids)) - before[name]) / elapsed)
    for name, pids in named.items():
        often = (sum(map(wakeups, pids)) - woken[name]) / (time.perf_counter() - since)
        table.row(name).note = f"{often:.1f} wakeups a second"


def _listen(client: Client) -> None:
    """Take what comes, as a page does."""
    try:
        client.receive(lambda _: False, 3600)
    except Exception:  # the server ended, and with it this thread
        return
