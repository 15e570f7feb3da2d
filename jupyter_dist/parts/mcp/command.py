"""`mcp`: groups for language-model agents."""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import secrets
import sys

from traitlets import Integer

from jupyter_dist.cli.command import Command
from jupyter_dist.client import AsyncClient, JupyterDistError

TOKEN_VARIABLE = "JUPYTER_DIST_MCP_TOKEN"  # noqa: S105  (its name)
LEAST_CHARS, MOST_CHARS = 1000, 1_000_000
LEAST_TOKEN = 16


class McpCommand(Command):
    """Serve groups over the Model Context Protocol, on stdin and stdout; with --http on a port of this machine only."""

    needs_client = False

    max_answer_chars = Integer(20_000, help="How many characters a tool answers with at most.").tag(config=True)

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the transport and the limits."""
        parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on 127.0.0.1; 0: any free port")
        parser.add_argument("--read-only", action="store_true", help="offer no tool that changes anything")
        parser.add_argument("--max-chars", type=int, help=f"limit on an answer ({self.max_answer_chars})")

    def act(self) -> int:
        """Serve until the client leaves, or until Ctrl-C."""
        if importlib.util.find_spec("mcp") is None:
            message = "The package mcp is not installed."
            raise JupyterDistError("bad_environment", message, "Install it: pip install 'jupyter-dist[mcp]'.")
        from . import serving  # noqa: PLC0415  (needs the optional package)

        tools = serving.Tools(self._connected_client, read_only=self.options.read_only, max_chars=self._max_chars())
        if self.options.http is None:
            asyncio.run(serving.serve_stdio(tools))
            return 0
        token = _token()
        with serving.listen(self.options.http) as listening:
            url = f"http://{serving.HOST}:{listening.getsockname()[1]}{serving.PATH}"
            self.tell({"url": url}, f"Serving at {url}. Stop with Ctrl-C.")
            if TOKEN_VARIABLE not in os.environ:
                print(f"Clients send: Authorization: Bearer {token}", file=sys.stderr)
            sys.stdout.flush()
            asyncio.run(serving.serve_http(tools, listening, token))
        return 0

    async def _connected_client(self) -> AsyncClient:
        return await AsyncClient.connect(self.options.url or self.url or None)

    def _max_chars(self) -> int:
        limit: int = self.options.max_chars or self.max_answer_chars
        if not LEAST_CHARS <= limit <= MOST_CHARS:
            hint = f"Choose {LEAST_CHARS} to {MOST_CHARS}."
            raise JupyterDistError("bad_request", f"An answer cannot be limited to {limit} characters.", hint)
        return limit


def _token() -> str:
    """Return the user's token, or a new one. Not an argument, because all users can read arguments."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token is not None and len(token) < LEAST_TOKEN:
        message = f"{TOKEN_VARIABLE} has {len(token)} characters."
        raise JupyterDistError("bad_request", message, f"Use {LEAST_TOKEN} or more, or unset it to get a new token.")
    return token or secrets.token_urlsafe(32)
