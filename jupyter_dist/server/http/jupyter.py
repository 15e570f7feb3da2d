"""Our handlers on a Jupyter server, which authenticates and authorizes as its user configured it."""

from __future__ import annotations

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.extension.handler import ExtensionHandlerMixin
from tornado.websocket import WebSocketHandler

from .routes import Host

JUPYTER = Host(
    rest=(ExtensionHandlerMixin, APIHandler),
    channel=(ExtensionHandlerMixin, WebSocketMixin, WebSocketHandler, JupyterHandler),
)
