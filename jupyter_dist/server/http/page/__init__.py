"""The topics that a connected page follows over its WebSocket."""
