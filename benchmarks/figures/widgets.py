"""A slider moved by a key, to what its callback shows drawn in a browser: on ranks and on the notebook's own kernel."""

from __future__ import annotations

import json
from contextlib import ExitStack

from benchmarks.browser import Page, chromium, server_for_pages
from benchmarks.options import Options
from benchmarks.ours import Client
from benchmarks.tables import Table

from .keystroke import OPEN, WATCH, code_cell, write_notebook

NOTEBOOK = "widgets.ipynb"
# Equal on all ranks: one slider drives them. A label: JupyterLab puts what a callback on a kernel prints into its log.
SLIDER = """
import itertools, ipywidgets
numbers = itertools.count()
slider, label = ipywidgets.IntSlider(max=10_000, description="rate"), ipywidgets.Label()
slider.observe(lambda _: setattr(label, "value", f"moved {next(numbers)}."), "value")
ipywidgets.VBox([slider, label])
"""
SIZES = (1, 2, 8)
AIM_MS = 60
WARM_UP_ROUNDS = 5
ROUNDS_FACTOR = 6
KERNEL = "JupyterLab's own kernel"

_RUN = """
(async index => {
  const { content } = jupyterapp.shell.currentWidget;
  content.activeCellIndex = index;
  await jupyterapp.commands.execute('notebook:run-cell').catch(() => undefined);
})
"""
# Waits for the one slider of the cell, and for the quiet after the last round.
_FOCUS = """
(async index => {
  const cell = jupyterapp.shell.currentWidget.content.widgets[index];
  const find = () => [...cell.node.querySelectorAll('.noUi-handle')].filter(handle => handle.offsetParent !== null);
  for (const start = performance.now(); find().length !== 1; ) {
    if (performance.now() - start > 30000) {
      throw new Error(`${find().length} sliders`);
    }
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  await new Promise(resolve => setTimeout(resolve, 200));
  find()[0].focus();
})
"""


def measure(options: Options) -> list[Table]:
    """One table; the systems take turns."""
    executable = chromium()
    if not options.ours or executable is None:
        return []
    table = Table("A slider moved by a key, to its callback's label drawn in the browser", "ms", KERNEL)
    names = [KERNEL, *(f"{size} rank{'s' * (size > 1)}" for size in SIZES)]
    with ExitStack() as stack:
        server = stack.enter_context(server_for_pages(executable))
        client = Client(server)
        for size in SIZES:
            client.wait_ready(client.start_group(size, f"ranks{size}")["id"])
        targets = [{"jupyter_dist": {"group": f"ranks{size}", "ranks": "all"}} for size in SIZES]
        write_notebook(server, NOTEBOOK, [code_cell(SLIDER, metadata) for metadata in ({}, *targets)])
        server.wait_for_warm_agent()
        page = stack.enter_context(Page(server, executable, sidebar=False))
        page.evaluate(OPEN.format(name=NOTEBOOK, kernel="true"))
        for index in range(len(names)):
            page.evaluate(f"{_RUN}({index})")
        for turn in range(WARM_UP_ROUNDS + options.rounds * ROUNDS_FACTOR):
            for index, name in enumerate(names):
                drawn = _move(page, index, f"moved {turn}.")
                if turn >= WARM_UP_ROUNDS:
                    table.row(name).values.append(drawn)
    median = table.row(names[1]).median
    table.aim(f"on one rank under {AIM_MS} ms: {median:.0f}", median < AIM_MS)
    return [table]


def _move(page: Page, index: int, text: str) -> float:
    """Press the arrow key on a cell's slider; return the milliseconds until the text was drawn."""
    page.evaluate(f"{WATCH}({index}, {json.dumps(text)})")
    page.evaluate(f"{_FOCUS}({index})")
    page.press("ArrowRight", 39)
    return float(page.evaluate("window.jpdDrawn"))
