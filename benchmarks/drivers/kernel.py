"""A real ipykernel and the cells a user types into it: whose magics it loads, the cells say."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from .protocol import serve

START_SECONDS = 60


class Kernel:
    """One kernel at a time, in this driver's Python."""

    def __init__(self) -> None:
        home = tempfile.gettempdir()  # this driver's own
        folders = {f"JUPYTER_{name}_DIR": f"{home}/{name.lower()}" for name in ("RUNTIME", "CONFIG", "DATA")}
        os.environ.update(folders, IPYTHONDIR=f"{home}/ipython")
        self._manager: KernelManager | None = None
        self._client: BlockingKernelClient | None = None

    def start(self, cells: list[str], patience: float) -> dict[str, Any]:
        """Start a fresh kernel and run what sets it up."""
        if self._manager is not None:
            self._client.stop_channels()
            self._manager.shutdown_kernel(now=True)
        # The kernel's Python is this one, whatever kernelspecs the machine has.
        self._manager, self._client = start_new_kernel(START_SECONDS, "python3")
        for code in cells:
            self._run(code, patience)
        return {}

    def cell(self, code: str) -> dict[str, Any]:
        """From the request until the kernel has replied and is idle, with all outputs here."""
        began = time.perf_counter()
        said = self._run(code, START_SECONDS)
        return {"seconds": time.perf_counter() - began, "said": said}

    def _run(self, code: str, patience: float) -> str:
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                said.append(message["content"]["text"])

        reply = self._client.execute_interactive(code, timeout=patience, output_hook=hear, allow_stdin=False)
        text = "".join(said)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{text}\n{reply['content'].get('ename')}: {reply['content'].get('evalue')}")
        return text


if __name__ == "__main__":
    assert sys.executable
    kernel = Kernel()
    serve({"start": kernel.start, "cell": kernel.cell})
