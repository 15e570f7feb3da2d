"""The timeline of 32 ranks with an hour of samples: frames of the page while it is opened, zoomed and moved."""

from __future__ import annotations

import urllib.request

from benchmarks.browser import Page, chromium, offer_extension
from benchmarks.options import Options
from benchmarks.ours import Client, Server
from benchmarks.processes import wait_until
from benchmarks.tables import Table

RANKS = 32
GROUP = "wall"
FRAME_MS = 50
STEPS = 60

# Each frame, and the longest task of the page's thread, since the last call of `jpdFrames`.
_WATCH = """
(() => {
  const frames = [];
  const tasks = [];
  let last = performance.now();
  const beat = () => {
    const now = performance.now();
    frames.push(now - last);
    last = now;
    requestAnimationFrame(beat);
  };
  requestAnimationFrame(beat);
  const add = list => tasks.push(...list.getEntries().map(entry => entry.duration));
  new PerformanceObserver(add).observe({ type: 'longtask' });
  window.jpdFrames = () => {
    return { longest: Math.max(0, ...frames.splice(0)), task: Math.max(0, ...tasks.splice(0)) };
  };
})()
"""
_HAS_COMMAND = "jupyterapp.commands.hasCommand('jupyter-dist:open-timeline')"
_OPEN = "jupyterapp.commands.execute('jupyter-dist:open-timeline', {{ group: '{group}' }}).then(() => null)"
_LOADED = "document.querySelector('.jpd-Timeline-readout')?.textContent.startsWith('Memory: 0 to') ?? false"
_FRAMES = "jpdFrames()"
_STEP = """
(async () => {{
  const host = document.querySelector('.jpd-Timeline-host');
  const box = host.getBoundingClientRect();
  const at = {{ bubbles: true, cancelable: true, clientX: box.left + box.width * 0.6, clientY: box.top + 40 }};
  for (let i = 0; i < {before}; i++) {{
    host.dispatchEvent(new WheelEvent('wheel', {{ ...at, ctrlKey: true, deltaY: -30 }}));
  }}
  await new Promise(resolve => setTimeout(resolve, 1000));
  jpdFrames();
  for (let i = 0; i < {steps}; i++) {{
    host.dispatchEvent(new WheelEvent('wheel', {{ ...at, {wheel} }}));
    await new Promise(resolve => requestAnimationFrame(resolve));
  }}
  await new Promise(resolve => setTimeout(resolve, 300));
  return jpdFrames();
}})()
"""
ZOOMED_IN = 10  # steps, so that there is something to move to
_WHEELS = {
    "zoom in and out": "ctrlKey: true, deltaY: (i % 20 < 10 ? -1 : 1) * 30",
    "move": "deltaX: (i % 20 < 10 ? -1 : 1) * 60",
}


class _Server(Server):
    """JupyterLab with our extension, and the one that makes up an hour."""

    def __init__(self) -> None:
        super().__init__("jupyterlab")
        offer_extension(self)

    def _command(self) -> list[str]:
        extensions = "--ServerApp.jpserver_extensions={'jupyter_dist': True, 'benchmarks.pasthour': True}"
        return [*(part for part in super()._command() if "jpserver_extensions" not in part), extensions]

    def fill(self, group: str) -> None:
        """Give the group its hour."""
        headers = {"Authorization": f"token {self.token}"}
        url = f"http://127.0.0.1:{self.port}/benchmarks/hour/{group}"
        with urllib.request.urlopen(urllib.request.Request(url, b"", headers), timeout=60) as response:
            assert response.status == 200


def measure(options: Options) -> list[Table]:
    """One table: the longest frame of each round, for each thing that a user does."""
    executable = chromium()
    if not options.ours or executable is None:
        return []
    table = Table(f"The timeline of {RANKS} ranks with an hour of samples: the longest frame", "ms", "")
    server = _Server()
    with server:
        client = Client(server)
        client.start_group(RANKS, GROUP)
        client.wait_ready(GROUP)
        server.fill(GROUP)
        for _ in range(options.rounds):
            with Page(server, executable, sidebar=False) as page:
                for what, frames in _use(page).items():
                    table.row(what).values.append(frames["longest"])
                    table.row(f"{what}: the longest task of the page's thread").values.append(frames["task"])
        client.end_group(GROUP)
    for what in _WHEELS:
        longest = max(table.row(what).values)
        table.aim(f"no frame over {FRAME_MS} ms, {what}: {longest:.0f} ms", longest <= FRAME_MS)
    return [table]


def _use(page: Page) -> dict[str, dict[str, float]]:
    page.evaluate(_WATCH)
    page.evaluate("new Promise(resolve => setTimeout(resolve, 2000))")
    wait_until(lambda: page.evaluate(_HAS_COMMAND) is True, 60, "the extension is there", 0.1)
    page.evaluate(_FRAMES)
    page.evaluate(_OPEN.format(group=GROUP))
    wait_until(lambda: page.evaluate(_LOADED) is True, 60, "the hour is there", 0.1)
    page.evaluate("new Promise(resolve => setTimeout(resolve, 500))")
    found = {"open it": page.evaluate(_FRAMES)}
    page.evaluate("new Promise(resolve => setTimeout(resolve, 1000))")
    for what, wheel in _WHEELS.items():
        before = ZOOMED_IN if what == "move" else 0
        found[what] = page.evaluate(_STEP.format(steps=STEPS, wheel=wheel, before=before))
    return found
