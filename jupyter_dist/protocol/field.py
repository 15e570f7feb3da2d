"""How a field of a type is described, for JSON schemas, docs and TypeScript."""

from __future__ import annotations

from typing import Annotated, Any


class Field:
    """Describes a field besides its type: a sentence, and keywords of JSON Schema. For `Annotated`."""

    def __init__(self, description: str = "", *, name: str = "", schema: Any = None, **keywords: Any) -> None:
        self.description = description
        self.name = name  # of the type in TypeScript
        self.schema = schema  # replaces the schema of the type
        self.keywords = keywords


RankSet = Annotated[str, Field(name="RankSet")]
