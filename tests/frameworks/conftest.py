"""One group for the rows of one framework; it imports what it needs in its first cells, as a user's would."""

from __future__ import annotations

import pytest

from .ranks import two_ranks


@pytest.fixture(scope="module")
def ranks(request, tmp_path_factory):
    """Two ranks, whose zygote imports what the module's PRELOAD names."""
    with two_ranks(tmp_path_factory.mktemp("group"), getattr(request.module, "PRELOAD", [])) as group:
        yield group
