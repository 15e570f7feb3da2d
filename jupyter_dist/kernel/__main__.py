"""Entry point of the kernelspec: `python -m jupyter_dist.kernel -f CONNECTION_FILE`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys

from jupyter_dist.kernel.execution.outputs import CellStdout
from jupyter_dist.kernel.kernel import RanksKernel


def main() -> None:
    """Serve a connection file until a client shuts the kernel down, or the process that started the kernel ends."""
    parser = argparse.ArgumentParser("jupyter_dist.kernel", description="A Jupyter kernel whose cells run on ranks.")
    parser.add_argument("-f", "--connection-file", required=True)
    connection_file = parser.parse_args().connection_file
    with contextlib.redirect_stdout(CellStdout(sys.stdout)):
        asyncio.run(RanksKernel(connection_file).serve())


if __name__ == "__main__":
    main()
    # A thread may still wait for a cell, which continues without this process.
    os._exit(0)
