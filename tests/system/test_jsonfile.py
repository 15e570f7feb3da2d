"""Files that another process, or another person, has written: what is in them is no more than a claim."""

import json
import os
from dataclasses import replace

import pytest

from jupyter_dist.agent.nodes.link.joinfile import JoinFile
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.launchers.allocation import STATE_FILE, saved
from jupyter_dist.system.files.jsonfile import read_json


def test_what_is_no_file_or_no_json_is_an_error_at_once(tmp_path):
    path = tmp_path / "x.json"
    for content in (b"", b"{", b"\xff", b"[" * 100_000 + b"]" * 100_000, b" " * (1 << 20) + b"1"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"."):
            read_json(path)
    path.write_text('{"a": [1]}')
    assert read_json(path) == {"a": [1]}
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none", "."):
        with pytest.raises(OSError, match=r"."):
            read_json(tmp_path / name)


def test_a_job_whose_state_is_damaged_has_no_folder_that_could_be_removed(tmp_path):
    directory = tmp_path / "g-1"
    directory.mkdir()
    whole = {"launcher": "slurm", "num_nodes": 2, "state": {}, "folder": "/scratch/me/g-1"}
    refused = ["/home/me", "/", "g-1", "/scratch/g-1/../../home/me", "/g-1/a/b", 7, None]
    lies = [{"folder": folder} for folder in refused] + [{"num_nodes": True}, {"output_folder": 1}, {"state": []}]
    for lie in [{}, {"folder": str(directory / "nodes")}, *lies]:
        (directory / STATE_FILE).write_text(json.dumps({**whole, **lie}))
        assert (saved(directory) is None) == (lie in lies), lie


def test_a_join_file_that_someone_has_changed_is_refused_by_the_name_of_its_field():
    join = JoinFile("g-1", "g", ["127.0.0.1:1"], "k" * 40, "s" * 40, 2, 30.0)
    assert JoinFile.parse(json.dumps(join.to_dict())) == join
    lies = {"group_id": ["../../home/me", "", 7], "endpoints": ["127.0.0.1:1", [7]], "num_nodes": [0, True, "2"]}
    lies |= {"preload": ["os", [1]], "lease_seconds": [-1, float("nan"), "1"], "is_tunnelled": [1], "ip_version": [4]}
    for name, values in lies.items():
        for value in values:
            with pytest.raises(JupyterDistError, match=f"The field '{name}' of the join file") as refused:
                JoinFile.parse(json.dumps(replace(join, **{name: value}).to_dict()))
            assert refused.value.code == "bad_request"
    with pytest.raises(JupyterDistError, match="not a join file"):
        JoinFile.parse("[" * 100_000)
