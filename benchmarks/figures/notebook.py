"""A notebook with 200 cells that have run: opened, saved and typed in, with outputs of ranks and with a kernel's."""

from __future__ import annotations

import json

from benchmarks.browser import Page, chromium, offer_extension
from benchmarks.options import Options
from benchmarks.ours import Json, Server
from benchmarks.tables import Table

from .keystroke import code_cell, write_notebook

CELLS = 200
RANKS = 8
LINES = 20
KERNEL, OURS = "outputs of a kernel", "outputs of ranks"
FILES = {KERNEL: "kernel.ipynb", OURS: "ranks.ipynb"}
KEYS = 20
SHARE = 1.2

_OPEN = """
(async path => {{
  const start = performance.now();
  const widget = await jupyterapp.commands.execute('docmanager:open', {{ path, kernel: {{ name: null }} }});
  await widget.context.ready;
  await widget.revealed;
  const outputs = () => widget.content.node.querySelectorAll('.jp-OutputArea-output');
  while (outputs().length === 0) {{
    await new Promise(resolve => requestAnimationFrame(resolve));
  }}
  await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - start;
}})({path})
"""
_SAVE = """
(async () => {
  const { context } = jupyterapp.shell.currentWidget;
  context.model.sharedModel.setMetadata('saved', performance.now());
  const start = performance.now();
  await context.save();
  return performance.now() - start;
})()
"""
_EDIT = """
(async () => {
  const { content } = jupyterapp.shell.currentWidget;
  content.activeCellIndex = 1;
  await content.scrollToItem(1);
  content.activate();
  content.mode = 'edit';
  content.activeCell.editor.focus();
  window.jpdKeys = [];
  window.addEventListener('keydown', event => {
    requestAnimationFrame(() => setTimeout(() => window.jpdKeys.push(performance.now() - event.timeStamp)));
  }, true);
  await new Promise(resolve => setTimeout(resolve, 300));
})()
"""
# As between the keys of a fast typist: without it, a key waits for the drawing of those before it.
_PAUSE = "new Promise(resolve => setTimeout(resolve, 100))"
_CLOSE = """
(async () => {
  jupyterapp.shell.currentWidget.context.model.dirty = false;
  await jupyterapp.commands.execute('application:close-all');
})()
"""


def measure(options: Options) -> list[Table]:
    """One table for each thing that a user does; both notebooks alternate."""
    executable = chromium()
    if not options.ours or executable is None:
        return []
    tables = {
        what: Table(f"A notebook of {CELLS} cells with output: {what}", "ms", KERNEL)
        for what in ("open", "save", "type a key")
    }
    server = Server("jupyterlab")
    offer_extension(server)
    with server:
        write_notebook(server, FILES[KERNEL], [_kernel_cell(number) for number in range(CELLS)])
        write_notebook(server, FILES[OURS], [_rank_cell(number) for number in range(CELLS)])
        with Page(server, executable, sidebar=False) as page:
            for turn in range(options.rounds + 1):
                for system, name in FILES.items():
                    took = _use(page, name)
                    for what, table in tables.items():
                        if turn:  # the first round warms up
                            table.row(system).values.append(took[what])
    for table in tables.values():
        ratio = min(table.ratio(OURS), table.least_ratio(OURS))
        table.aim(f"within {SHARE:g}x of a kernel's: {ratio:.2f}x", ratio <= SHARE)
    return list(tables.values())


def _use(page: Page, name: str) -> dict[str, float]:
    took = {"open": float(page.evaluate(_OPEN.format(path=json.dumps(name))))}
    took["save"] = float(page.evaluate(_SAVE))
    page.evaluate(_EDIT)
    for _ in range(KEYS):
        page.press("x", 88)
        page.evaluate(_PAUSE)
    keys = sorted(page.evaluate("window.jpdKeys"))
    took["type a key"] = float(keys[len(keys) // 2])
    page.evaluate(_CLOSE)
    return took


def _text(number: int) -> str:
    return "".join(f"cell {number}, line {line}: loss {1 / (line + 1):.4f}\n" for line in range(LINES))


def _kernel_cell(number: int) -> Json:
    output: Json = {"output_type": "stream", "name": "stdout", "text": _text(number)}
    return code_cell(f"train({number})", {}, [output])


def _rank_cell(number: int) -> Json:
    ranks = f"0-{RANKS - 1}"
    text = _text(number)
    bundle: Json = {
        "version": 1,
        "group": {"id": "g-00000000", "name": "train", "world_size": RANKS},
        "execution_id": f"e-{number:024x}",
        "ranks": ranks,
        "state": "ok",
        "statuses": [{"ranks": ranks, "status": "ok", "seconds": 1.5}],
        "started_at": 1.0,
        "ended_at": 2.5,
        "items": [{"ranks": ranks, "output": {"output_type": "stream", "name": "stdout", "text": text}}],
    }
    data = {"application/vnd.jupyter-dist.ranks+json": bundle, "text/plain": f"[ranks {ranks}]\n{text}"}
    output: Json = {"output_type": "display_data", "data": data, "metadata": {}}
    return code_cell(f"train({number})", {"jupyter_dist": {"group": "train", "ranks": "all"}}, [output])
