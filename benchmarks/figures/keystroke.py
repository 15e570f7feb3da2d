"""A key pressed to the text drawn, in a real browser: rank cells, and JupyterLab's own kernel cell.

Once in one notebook, and once each in a notebook and a page of its own, as people have them.
"""

from __future__ import annotations

import json
from contextlib import ExitStack

from benchmarks.browser import Page, chromium, offer_extension
from benchmarks.options import Options
from benchmarks.ours import Client, Json, Server
from benchmarks.tables import Table

NOTEBOOK = "keystroke.ipynb"
KERNEL, RANKS = "JupyterLab's kernel cell", "our rank cell"
COUNTER = "import itertools; numbers = itertools.count()"
CELLS = {"print": 'print(f"tick {next(numbers)}")', "an expression": 'f"tick {next(numbers)}"'}
SIZES = (2, 8)
APART_SIZES = (1, 2, 8)
APART_SHARE = 1.2
WARM_UP_ROUNDS = 5
ROUNDS_FACTOR = 6

# Resolves to milliseconds from the key's own time to the frame with the text being handed over to be drawn.
WATCH = """
(async (index, text) => {
  const { content } = jupyterapp.shell.currentWidget;
  content.activeCellIndex = index;
  content.mode = 'command';
  content.activate();
  const cell = content.widgets[index];
  const area = cell.node.querySelector('.jp-Cell-outputArea');
  window.jpdDrawn = new Promise((resolve, reject) => {
    let pressed = 0;
    // The text may be put in by a frame's own callback, and is drawn by that frame then.
    let isFrame = false;
    const afterFrame = callback => {
      const channel = new MessageChannel();
      channel.port1.onmessage = callback;
      channel.port2.postMessage(null);
    };
    const beat = () => {
      isFrame = true;
      afterFrame(() => (isFrame = false));
      if (!done) {
        requestAnimationFrame(beat);
      }
    };
    let done = false;
    requestAnimationFrame(beat);
    window.addEventListener('keydown', event => { pressed = event.timeStamp; }, { capture: true, once: true });
    const timer = setTimeout(() => reject(new Error(`no ${text} in: ${area.textContent}`)), 30000);
    const observer = new MutationObserver(() => {
      if (pressed && area.textContent.includes(text)) {
        done = true;
        observer.disconnect();
        clearTimeout(timer);
        if (isFrame) {
          afterFrame(() => resolve(performance.now() - pressed));
        } else {
          requestAnimationFrame(() => afterFrame(() => resolve(performance.now() - pressed)));
        }
      }
    });
    observer.observe(area, { childList: true, subtree: true, characterData: true });
  });
})
"""
IDLE = """
(async () => {
  const { content, sessionContext } = jupyterapp.shell.currentWidget;
  const working = () => [
    ...content.widgets.filter(cell => cell.model.executionState === 'running').map(cell => cell.model.id),
    ...[sessionContext.session?.kernel?.status].filter(status => status !== undefined && status !== 'idle')
  ];
  for (const start = performance.now(); working().length > 0; ) {
    if (performance.now() - start > 30000) {
      throw new Error(`still working: ${working()}`);
    }
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  await new Promise(resolve => setTimeout(resolve, 150));
})()
"""
OPEN = """
jupyterapp.commands.execute('docmanager:open', {{ path: '{name}' }}).then(async widget => {{
  await widget.context.ready;
  await widget.sessionContext.ready;
  while ({kernel} && widget.sessionContext.session?.kernel?.status !== 'idle') {{
    await new Promise(resolve => setTimeout(resolve, 50));
  }}
  await widget.revealed;
  return 'open';
}})
"""


def measure(options: Options) -> list[Table]:
    """One table per number of ranks and kind of cell, and one of notebooks in pages of their own; systems alternate."""
    executable = chromium()
    if not options.ours or executable is None:
        return []
    return [*_in_one_notebook(options, executable), _apart(options, executable)]


def _apart(options: Options, executable: str) -> Table:
    """Measure notebooks in browsers of their own: a kernel's, and one for each number of ranks."""
    with ExitStack() as stack:
        server = Server("jupyterlab")
        offer_extension(server)
        stack.enter_context(server)
        client = Client(server)
        source = CELLS["print"]
        write_notebook(server, "kernel.ipynb", [code_cell(text, {}) for text in (f"{COUNTER}; print('0')", source)])
        pages = {KERNEL: _open(stack, server, executable, "kernel.ipynb")}
        for size in APART_SIZES:
            client.wait_ready(client.start_group(size, f"ranks{size}")["id"])
            target = {"jupyter_dist": {"group": f"ranks{size}", "ranks": "all"}}
            name = f"ranks{size}.ipynb"
            write_notebook(server, name, [code_cell(text, {}) for text in (f"{COUNTER}; print('0')", source)], target)
            pages[f"{size} ranks" if size > 1 else "1 rank"] = _open(stack, server, executable, name)
        table = Table("Ctrl+Enter to print drawn, each notebook in a page of its own", "ms", KERNEL)
        for page in pages.values():
            run(page, 0, "0")
        for turn in range(WARM_UP_ROUNDS + options.rounds * ROUNDS_FACTOR):
            for system, page in pages.items():
                drawn = run(page, 1, f"tick {turn}", shift=False)
                if turn >= WARM_UP_ROUNDS:
                    table.row(system).values.append(drawn)
    for system in list(pages)[1:]:
        ratio = table.row(system).median / table.row(KERNEL).median
        table.aim(
            f"{system} within {APART_SHARE:g}x of the kernel cell: {ratio:.2f}x of its median", ratio <= APART_SHARE
        )
    return table


def _open(stack: ExitStack, server: Server, executable: str, name: str) -> Page:
    page = stack.enter_context(Page(server, executable, sidebar=False))
    page.evaluate(OPEN.format(name=name, kernel="true" if name.startswith("kernel") else "false"))
    return page


def _in_one_notebook(options: Options, executable: str) -> list[Table]:
    with ExitStack() as stack:
        server = Server("jupyterlab")
        offer_extension(server)
        stack.enter_context(server)
        client = Client(server)
        for size in SIZES:
            client.wait_ready(client.start_group(size, f"ranks{size}")["id"])
        write_notebook(server, NOTEBOOK, [cell for size in SIZES for cell in _cells(size)])
        server.wait_for_warm_agent()
        page = stack.enter_context(Page(server, executable, sidebar=False))
        page.evaluate(OPEN.format(name=NOTEBOOK, kernel="true"))
        return [table for number, size in enumerate(SIZES) for table in _of_size(page, size, number * 6, options)]


def _of_size(page: Page, size: int, first: int, options: Options) -> list[Table]:
    tables = []
    ticks = {KERNEL: -1, RANKS: -1}
    for index in (first, first + 1):
        run(page, index, "0")
    for number, what in enumerate(CELLS):
        table = Table(f"Shift+Enter to {what} drawn in the browser, {size} ranks", "ms", KERNEL)
        places = {KERNEL: first + 2 + 2 * number, RANKS: first + 3 + 2 * number}
        for turn in range(WARM_UP_ROUNDS + options.rounds * ROUNDS_FACTOR):
            for system, index in places.items():
                ticks[system] += 1
                drawn = run(page, index, f"tick {ticks[system]}")
                if turn >= WARM_UP_ROUNDS:
                    table.row(system).values.append(drawn)
        ratio = table.row(RANKS).median / table.row(KERNEL).median
        table.aim(f"not slower than the kernel cell: {ratio:.2f}x of its median", ratio <= 1)
        tables.append(table)
    return tables


def run(page: Page, index: int, text: str, *, shift: bool = True) -> float:
    """Press Shift+Enter in a cell, or Ctrl+Enter; return the milliseconds to the drawn text, and wait for idle."""
    page.evaluate(f"{WATCH}({index}, {json.dumps(text)})")
    page.press("Enter", 13, shift=shift, ctrl=not shift)
    drawn = float(page.evaluate("window.jpdDrawn"))
    page.evaluate(IDLE)
    return drawn


def _cells(size: int) -> list[Json]:
    target = {"jupyter_dist": {"group": f"ranks{size}", "ranks": "all"}}
    # The first numbers are printed, so that it is seen when they have been set.
    sources = [f"{COUNTER}; print('0')", *CELLS.values()]
    return [code_cell(source, metadata) for source in sources for metadata in ({}, target)]


def code_cell(source: str, metadata: Json, outputs: list[Json] | None = None) -> Json:
    """A code cell of a notebook file."""
    shared: Json = {"cell_type": "code", "execution_count": None, "source": source}
    return {**shared, "metadata": metadata, "outputs": outputs or []}


def write_notebook(server: Server, name: str, cells: list[Json], metadata: Json | None = None) -> None:
    """Put a notebook with these cells into the server's folder: for Python's kernel, or with this metadata."""
    kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    metadata = {"kernelspec": kernelspec} if metadata is None else metadata
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
    (server.home / name).write_text(json.dumps(notebook))
