"""How long a user who answers `input()` waits for the line that follows it: by REST, and by Enter in a real browser."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack

from benchmarks.browser import Page, chromium, server_for_pages
from benchmarks.options import Options
from benchmarks.ours import Client
from benchmarks.processes import wait_until
from benchmarks.tables import Table

from .keystroke import OPEN, WATCH, code_cell, write_notebook

NOTEBOOK = "asking.ipynb"
ASKING = """
while True:
    answer = input("answer? ")
    print(f"took {answer}.")
"""
RANKS = 2
AIM_MS = 50
WARM_UP_ROUNDS = 5
ROUNDS_FACTOR = 6
REST, PAGE = "by REST, to the line on the WebSocket", "Enter, to the line drawn in the browser"

_FOCUS = """
(async text => {
  const find = () => document.querySelector('.jpd-Prompt-input:not(:disabled)');
  for (const start = performance.now(); !find() || find().value !== ''; ) {
    if (performance.now() - start > 30000) {
      throw new Error('there is no field for the answer');
    }
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  const field = find();
  field.focus();
  field.value = text;
  field.dispatchEvent(new Event('input', { bubbles: true }));
})
"""


def measure(options: Options) -> list[Table]:
    """One table: both ways, on two ranks that ask the same."""
    if not options.ours:
        return []
    table = Table(f"An answer to `input()` on {RANKS} ranks, to the line that follows", "ms", REST)
    executable = chromium()
    with ExitStack() as stack:
        server = stack.enter_context(server_for_pages(executable))
        client = Client(server)
        client.open_channel()
        group = client.start_group(RANKS)["id"]
        client.wait_ready(group)
        rounds = WARM_UP_ROUNDS + options.rounds * ROUNDS_FACTOR
        _by_rest(client, group, rounds, table)
        if executable:
            target = {"jupyter_dist": {"group": "bench", "ranks": "all"}}
            write_notebook(server, NOTEBOOK, [code_cell(ASKING, target)])
            page = stack.enter_context(Page(server, executable, sidebar=False))
            page.evaluate(OPEN.format(name=NOTEBOOK, kernel="true"))
            _in_the_page(page, rounds, table)
    for name in (REST, PAGE) if executable else (REST,):
        median = table.row(name).median
        table.aim(f"{name}: under {AIM_MS} ms: {median:.0f}", median < AIM_MS)
    return [table]


def _by_rest(client: Client, group: str, rounds: int, table: Table) -> None:
    path = f"/groups/{group}/executions"
    execution = client.must("POST", path, {"code": ASKING, "allow_stdin": True})["id"]
    client.subscribe("execution", since=0, group=group, execution=execution)
    seq = -1
    for number in range(rounds):
        seq = _question(client, seq)
        begun = time.perf_counter()
        client.must("POST", f"{path}/{execution}/input", {"text": f"{number}", "seq": seq})
        client.receive(
            lambda message, line=f"took {number}.": message["type"] == "view" and line in json.dumps(message)
        )
        if number >= WARM_UP_ROUNDS:
            table.row(REST).values.append(1000 * (time.perf_counter() - begun))
    client.unsubscribe("execution", group=group, execution=execution)
    client.must("POST", f"/groups/{group}/interrupt", {"ranks": "all"})


def _question(client: Client, after: int) -> int:
    """Return the number of the question that all ranks ask."""
    wait_until(lambda: _asked(client, after) is not None, 30, "all ranks ask", 0.05)
    return _asked(client, after) or 0


def _asked(client: Client, after: int) -> int | None:
    running = client.must("GET", "/groups/bench/executions")["executions"]
    found = [asked for execution in running for asked in execution.get("asking", ())]
    is_new = len(found) == 1 and found[0]["ranks"] == f"0-{RANKS - 1}" and found[0]["seq"] > after
    return found[0]["seq"] if is_new else None


def _in_the_page(page: Page, rounds: int, table: Table) -> None:
    page.evaluate("jupyterapp.commands.execute('notebook:run-cell').then(() => 0, () => 0) && 0")
    for number in range(rounds):
        page.evaluate(f"{WATCH}(0, {json.dumps(f'took page {number}.')})")
        page.evaluate(f"{_FOCUS}({json.dumps(f'page {number}')})")
        page.press("Enter", 13)
        drawn = float(page.evaluate("window.jpdDrawn"))
        if number >= WARM_UP_ROUNDS:
            table.row(PAGE).values.append(drawn)
        time.sleep(0.15)  # until both ranks ask again
