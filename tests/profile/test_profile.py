"""A profiled cell from a script."""

import json

import pytest

from jupyter_dist.client import JupyterDistError


def test_a_script_profiles_a_cell_and_saves_the_trace(group, tmp_path):
    path = tmp_path / "trace.json"
    result = group.profile("x = torch.ones(64, 64) @ torch.ones(64, 64)\ndist.all_reduce(x)", trace=str(path))
    assert result.ok
    assert [row.rank for row in result.profile.ranks] == [0, 1]
    assert "kept others waiting" in result.text
    assert {event["pid"] for event in json.loads(path.read_text())["traceEvents"]} == {0, 1}


def test_a_cell_without_a_profile_has_none(group, tmp_path):
    result = group.run("1")
    assert result.profile is None
    with pytest.raises(JupyterDistError) as refused:
        group.save_trace(result, str(tmp_path / "no.json"))
    assert refused.value.code == "not_found"
