"""The HTTP API from the client's end: requests, the WebSocket, and what is followed on it."""
