"""The node's end of a tunnel: `python -m jupyter_dist.agent.nodes.tunnel.bridge SOCKET`, with the head at its pipes.

It listens on a unix socket, to which the node agent connects, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from jupyter_dist.agent.nodes.link.places import check_owner, remove
from jupyter_dist.transport.stream import start_private_server

from .channels import HELLO, Channels


def main(argument: str | None = None) -> int:
    """Pass connections to the socket on to the head until the head closes the pipes; return the exit code."""
    path = Path(argument if argument is not None else sys.argv[1])
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        check_owner(path)
        path.unlink(missing_ok=True)
        asyncio.run(_serve(path))
    except OSError as err:
        sys.stderr.write(f"jupyter dist: the tunnel cannot be opened: {err}.\n")
        return 1
    finally:
        remove(path)
    return 0


async def _serve(path: Path) -> None:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    serving = asyncio.current_task()
    assert serving is not None
    loop.add_signal_handler(signal.SIGTERM, serving.cancel)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    channels = Channels(reader, writer)
    server = await start_private_server(lambda *connection: channels.take(connection), path)
    writer.write(HELLO)
    try:
        await channels.run()
    except asyncio.CancelledError:
        return
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
