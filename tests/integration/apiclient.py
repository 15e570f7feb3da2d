"""The product as programs and pages use it, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from answers import check_answer, check_message
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import url_concat
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.websocket import websocket_connect
from waits import PATIENCE, until_async

from jupyter_dist.system.limits import within


class Api:
    """The product as a program uses it: over HTTP, and nothing else."""

    def __init__(self, fetch: Any, ws_fetch: Any) -> None:
        self._fetch = fetch
        self._ws_fetch = ws_fetch

    async def ask(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        options: dict[str, Any] = {"body": json.dumps(body or {})} if method == "POST" else {}
        response = await self._fetch(
            "jupyter-dist",
            "api",
            *path.split("/"),
            method=method,
            params={name: str(value) for name, value in params.items()},
            request_timeout=2 * PATIENCE,
            **options,
        )
        if response.headers.get("Content-Type", "").startswith("text/plain"):
            return response
        answer = json.loads(response.body) if response.body else None
        check_answer(method, path, response.code, answer)
        return answer

    async def refused(self, *arguments: Any, **params: Any) -> tuple[int, dict[str, str]]:
        with pytest.raises(HTTPClientError) as raised:
            await self.ask(*arguments, **params)
        assert raised.value.response is not None
        answer = json.loads(raised.value.response.body)
        check_answer(arguments[0], arguments[1], raised.value.code, answer)
        return raised.value.code, answer["error"]

    async def start(self, num_ranks: int = 2, **fields: Any) -> dict[str, Any]:
        group = await self.ask("POST", "groups", {"num_ranks": num_ranks, **fields})
        assert group["state"] in ("starting", "ready"), group
        return await self.settled(group["id"])

    async def settled(self, group: str, state: str = "starting") -> dict[str, Any]:
        found = await self.ask("GET", f"groups/{group}", wait=PATIENCE, not_state=state)
        assert found["state"] == "ready", found["error"]
        return found

    async def until(self, group: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the group is so: its state may arrive after that of a cell."""
        found: dict[str, Any] = {}

        async def is_reached() -> bool:
            nonlocal found
            found = await self.ask("GET", f"groups/{group}")
            return is_so(found)

        await until_async(is_reached, lambda: found)
        return found

    async def shown(self, group: str, execution: str, text: str) -> None:
        """Wait until a cell has shown that."""

        async def is_shown() -> bool:
            return any(text in str(said) for _, said in texts(await self.view(group, execution, wait=0)))

        await until_async(is_shown, lambda: text)

    async def submit(self, group: str, code: str, ranks: str = "all", **fields: Any) -> str:
        execution = await self.ask("POST", f"groups/{group}/executions", {"code": code, "ranks": ranks, **fields})
        return execution["id"]

    async def view(self, group: str, execution: str, wait: float = PATIENCE) -> dict[str, Any]:
        return await self.ask("GET", f"groups/{group}/executions/{execution}", wait=wait)

    async def run(self, group: str, code: str, ranks: str = "all", **fields: Any) -> dict[str, Any]:
        return await self.view(group, await self.submit(group, code, ranks, **fields))

    async def channel(self) -> Channel:
        channel = Channel(await self._ws_fetch("jupyter-dist", "api", "channel"))
        assert (await channel.next())["type"] == "hello"
        return channel


class Remote:
    """What pytest-jupyter's `jp_fetch` and `jp_ws_fetch` are for its own server, for one in another process."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"token {token}"}
        self._client = SimpleAsyncHTTPClient(force_instance=True)

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    async def fetch(
        self, *parts: str, params: dict[str, str] | None = None, headers: dict[str, str] | None = None, **options: Any
    ) -> Any:
        url = url_concat(self._url + "/".join(parts), params)
        return await self._client.fetch(url, headers={**self._headers, **(headers or {})}, **options)

    async def ws_fetch(self, *parts: str) -> Any:
        url = self._url.replace("http", "ws", 1) + "/".join(parts)
        return await websocket_connect(HTTPRequest(url, headers=self._headers, connect_timeout=PATIENCE))


class Channel:
    """A page's end of the WebSocket: keeps views as the page would."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.items: list[dict[str, Any]] = []
        self.seq = 0

    async def close(self) -> None:
        """Close the connection; its end is only heard after all messages before it."""
        self.socket.close()
        while await within(PATIENCE, self.socket.read_message()) is not None:
            pass

    async def next(self) -> dict[str, Any]:
        data = await within(PATIENCE, self.socket.read_message())
        message = json.loads(data)
        check_message(message, len(data))
        return message

    async def next_of(self, kind: str) -> dict[str, Any]:
        while (message := await self.next())["type"] != kind:
            pass
        return message

    def send(self, **message: Any) -> None:
        self.socket.write_message(json.dumps(message))

    def subscribe(self, topic: str, **fields: Any) -> None:
        self.send(type="subscribe", topic=topic, **fields)

    async def follow(self, group: str, execution: str, since: int = 0) -> dict[str, Any]:
        """Follow an execution to its end; `items` is then what the page shows."""
        self.subscribe("execution", group=group, execution=execution, since=since)
        while True:
            message = await self.next()
            if message["type"] == "view":
                self._apply(message)
            if message["type"] == "execution" and message["execution"]["ended_at"] is not None:
                return message["execution"]

    def _apply(self, message: dict[str, Any]) -> None:
        if message.get("reset"):
            self.items = []
        self.items = [item for item in self.items if item["id"] not in message["removed"]]
        for new in message["items"]:
            after = new.pop("after")
            old = next((item for item in self.items if item["id"] == new["id"]), None)
            if "append" in new:
                assert old is not None
                new["output"] = {**old["output"], "text": old["output"]["text"] + new.pop("append")}
            self.items = [item for item in self.items if item["id"] != new["id"]]
            position = 0 if after is None else 1 + [item["id"] for item in self.items].index(after)
            self.items.insert(position, new)
        self.seq = message["seq"]


def without_seq(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items as they are shown: the seq of an item may grow without anything to send."""
    return [{key: value for key, value in item.items() if key != "seq"} for item in items]


def texts(view: dict[str, Any]) -> list[tuple[str, str]]:
    """(ranks, text) of what is shown."""
    shown = []
    for item in view["items"]:
        output = item["output"]
        text = output.get("text") or output.get("data", {}).get("text/plain") or output.get("ename")
        shown.append((item["ranks"], text))
    return shown
