"""Real rank processes for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rankclient import RankClient, ZygoteClient, make_spec


@pytest.fixture(scope="session")
def zygote() -> Iterator[ZygoteClient]:
    client = ZygoteClient()
    assert client.warm["safe"], client.warm["reason"]
    yield client
    client.close()


@pytest.fixture
def make_group(zygote: ZygoteClient, tmp_path: Path) -> Iterator[Callable[..., list[RankClient]]]:
    """Start so many ranks; they are killed after the test."""
    ranks: list[RankClient] = []

    def make(world_size: int = 1, **changes: Any) -> list[RankClient]:
        store = tmp_path / f"store{len(ranks)}"
        specs = [make_spec(store, rank, world_size, **changes) for rank in range(world_size)]
        group = [RankClient(zygote, spec) for spec in specs]
        ranks.extend(group)
        return [rank.ready() for rank in group]

    yield make
    for rank in ranks:
        rank.close()


@pytest.fixture
def rank(make_group: Callable[..., list[RankClient]]) -> RankClient:
    """A rank of one's own, for tests that break things."""
    return make_group(1)[0]


@pytest.fixture(scope="module")
def shared(zygote: ZygoteClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankClient]:
    """A rank that the tests of a module share; none of them may break it."""
    folder = tmp_path_factory.mktemp("shared")
    client = RankClient(zygote, make_spec(folder / "store")).ready()
    yield client
    client.close()
