"""What one connected page follows over its WebSocket."""
