"""Trial connections between nodes: ranks connect to each other, too, and the link to the head shows nothing of that."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket

from jupyter_dist.system.limits import within
from jupyter_dist.transport.frames import Header

from .joinfile import address_on, interface_of, label_of

TRIAL_SECONDS = 3.0  # TCP sends the first packet again after one second
TRIALS_AT_ONCE = 64
OPEN_SECONDS = 30.0  # then a trial port is closed, whatever the head does
_TOKEN_BYTES = 8


class TrialPort:
    """A port that sends its token to each client. Another machine with the same address does not know the token.

    It is open while the nodes try their connections, on the address that the ranks of this node will have.
    """

    def __init__(self) -> None:
        self._token = secrets.token_hex(_TOKEN_BYTES)
        self._server: asyncio.Server | None = None

    async def open(self, interface: str | None, address: str) -> Header:
        """Open the port on this interface; return its place. Without an interface, on this address of the machine.

        Raises:
            OSError: this machine has no such interface, or it has no address.
        """
        self.close()
        name = interface or label_of(address)
        own = address_on(name) if name else address  # the first of its addresses, as gloo and NCCL
        if own is None:
            raise OSError(f"it has no network interface {interface} with an address")
        self._server = await asyncio.start_server(self._answer, own, 0)
        asyncio.get_running_loop().call_later(OPEN_SECONDS, self._server.close)
        port = self._server.sockets[0].getsockname()[1]
        return {"address": own, "port": port, "token": self._token, "interface": interface_of(own)}

    def close(self) -> None:
        """Close the port. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(self._token.encode())
            writer.close()


async def try_places(places: list[Header]) -> list[str | None]:
    """Connect to the trial ports at these places; return for each why it failed, None if it did not."""
    gate = asyncio.Semaphore(TRIALS_AT_ONCE)

    async def one(place: Header) -> str | None:
        async with gate:
            return await _try_place(str(place["address"]), int(place["port"]), str(place["token"]))

    return list(await asyncio.gather(*map(one, places)))


async def _try_place(address: str, port: int, token: str) -> str | None:
    writer: asyncio.StreamWriter | None = None

    async def connect() -> bytes:
        nonlocal writer
        reader, writer = await asyncio.open_connection(address, port)
        return await reader.readexactly(len(token))

    try:
        is_known = await within(TRIAL_SECONDS, connect()) == token.encode()
    except asyncio.TimeoutError:
        return f"no answer within {TRIAL_SECONDS:g} s"
    except (asyncio.IncompleteReadError, socket.gaierror):
        return "another machine answers there"
    except OSError as err:
        return (err.strerror or str(err)).lower()
    finally:
        if writer is not None:
            writer.close()
    return None if is_known else "another machine answers there"
