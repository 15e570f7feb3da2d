"""A resize in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def resized_text(group: Mapping[str, Any]) -> str:
    """Return a sentence about the last resize of a group, and what cells must make again."""
    resized = group.get("resized")
    if not resized or resized["seconds"] is None:
        return f"Group '{group['name']}' has {group['world_size']} ranks."
    size = f"has {resized['after']} ranks, not {resized['before']}, after {resized['seconds']:.1f} s"
    return "\n".join([f"Group '{group['name']}' {size}; ranks that stay keep their variables.", *resized["again"]])
