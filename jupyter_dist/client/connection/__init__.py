"""The client side of the HTTP API: requests, the WebSocket, and its topics."""
