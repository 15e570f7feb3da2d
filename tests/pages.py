"""A page of the server in this process, without its WebSocket."""

import asyncio
import contextlib

from jupyter_dist.server.http.page.page import Page


@contextlib.asynccontextmanager
async def page_of(manager):
    """A page, and what it was sent; it reads while its `reads` is set."""
    sent = []

    async def send(message):
        sent.append(message)
        await page.reads.wait()

    page = Page(manager, send)
    page.reads = asyncio.Event()
    page.reads.set()
    sender = asyncio.ensure_future(page.run())
    try:
        yield page, sent
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)
        await page.close()
