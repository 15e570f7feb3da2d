"""Forged records in a group's journal do not harm the server, which shows the rest of the output."""

from __future__ import annotations

import asyncio
import json
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupyter_dist.agent.contact.groupjson import write_group_json
from jupyter_dist.journal.records.record import record_prefix, scan
from jupyter_dist.journal.records.sound import is_sound
from jupyter_dist.journal.writer import segment_path
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.specs import GroupSpec
from jupyter_dist.server.folding.content import DamagedContentError, read_content
from jupyter_dist.server.mirror.logs import log_text
from jupyter_dist.server.mirror.mirror import GroupMirror
from jupyter_dist.server.spawner.directories import GroupDirectory
from jupyter_dist.transport.frames import encode_frame

WORLD_SIZE = 3
KINDS = ["begin", "stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"]
KINDS += ["rank_end", "end", "note", "nonsense"]

numbers = st.integers() | st.integers(0, 5) | st.sampled_from([2**53, 10**15, -1]) | st.floats() | st.booleans()
json_values = st.recursive(
    st.none() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
rank_sets = st.sampled_from(["0-2", "1", "0-6000000", "0-4095," * 9, "-1", "2-0", "all", "0-3", ""])
headers = st.fixed_dictionaries(
    {"seq": numbers | json_values, "kind": st.sampled_from(KINDS) | json_values},
    optional={
        "at": st.just(1.0) | json_values,
        "execution_id": st.sampled_from(["e-1", "e-2", "x" * 9999]) | json_values,
        "rank": numbers | json_values,
        "ranks": rank_sets | json_values,
        "name": st.sampled_from(["stdout", "stderr"]) | json_values,
        "status": st.just("ok") | json_values,
        "seconds": numbers | json_values | st.lists(numbers, max_size=4),
        "sizes": st.lists(numbers, max_size=4) | json_values,
        "execution_count": numbers | json_values,
        "notebook": json_values,
    },
)
payloads = (
    st.binary(max_size=40)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("data", "metadata", "transient", "ename", "evalue", "traceback", "wait"), json_values),
    ).map(lambda value: json.dumps(value).encode())
    | st.sampled_from([b"[" * 50_000, b'{"data": {"a": NaN, "b": 1e999}}', b'{"data": ' + b'{"a":' * 300 + b"1"])
)


def framed(header, payload=b""):
    frame = encode_frame({"t": "record", **header}, payload)
    return record_prefix(frame) + frame


SPEC = {"world_size": WORLD_SIZE, "name": "g", "accelerator": "cpu", "backend": "gloo", "devices": [], "cwd": "/"}


def lost_group(folder: Path) -> GroupMirror:
    """A group of which the journal alone is left."""
    (folder / "journal").mkdir()
    group = GroupMirror(GroupDirectory(folder), "s-1", lambda topic: None)
    group.status.take_remains({"spec": SPEC})
    group.mark_lost("")
    execution = {
        "id": "e-good",
        "state": "ok",
        "ranks": "0-2",
        "statuses": [],
        "line": "1",
        "begin_seq": 1,
        "end_seq": None,
    }
    group.executions.update(execution)
    return group


GOOD = [
    ({"seq": 1, "kind": "begin", "ranks": "0-2", "execution_count": 1}, b"code"),
    ({"seq": 2, "kind": "stream", "rank": 0, "name": "stdout"}, b"first\n"),
    ({"seq": 900, "kind": "stream", "rank": 1, "name": "stdout"}, b"second\n"),
    ({"seq": 901, "kind": "end", "state": "ok"}, b""),
]
GOOD = [({"at": 1.0, "execution_id": "e-good", **header}, payload) for header, payload in GOOD]


def check_all_that_pages_are_given(group: GroupMirror) -> None:
    view = asyncio.run(group.view("e-good"))
    shown = json.dumps(view.snapshot().to_list(), allow_nan=False)
    assert "first" in shown
    assert "second" in shown
    for rank in range(WORLD_SIZE):
        page = asyncio.run(group.history.log_page(rank, None, 1 << 20))
        json.dumps(page, allow_nan=False)
        assert all(record["rank"] == rank for record in page["records"])
        for records in group.history.log_chunks(rank, group.world_size):
            log_text(records)
    for known in list(group._views._views.values()):
        for item in known.snapshot().to_list():
            json.dumps(item, allow_nan=False)
            assert set(RankSet.from_text(item["ranks"])) <= set(range(WORLD_SIZE))
    json.dumps(group.executions.listed(), allow_nan=False)


@settings(settings.get_profile("channels"), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.tuples(headers, payloads), max_size=8))
def test_any_record_is_shown_within_bounds_or_left_out(forged):
    with tempfile.TemporaryDirectory() as folder:
        group = lost_group(Path(folder))
        written = [*GOOD[:2], *forged, *GOOD[2:]]
        data = b"".join(framed(header, payload) for header, payload in written)
        segment_path(group.directory.journal_path, 1).write_bytes(data)
        for header, payload in written:  # live
            group._on_message({"t": "record", **header}, payload)
        check_all_that_pages_are_given(group)
        group._views._views.clear()  # and from the file
        if not any(header.get("execution_id") == "e-good" for header, _ in forged):
            check_all_that_pages_are_given(group)


@pytest.mark.parametrize("ranks", ["0-6000000", "0-9999999", "0-3", "0-4095," * 900, "1-0", "0,0", "", None, 5])
def test_a_record_that_names_ranks_that_are_not_there_costs_nothing(tmp_path, ranks):
    group = lost_group(tmp_path)
    header = {"seq": 5, "at": 1.0, "kind": "begin", "execution_id": "e-x", "ranks": ranks}
    tracemalloc.start()
    try:
        assert not is_sound(header, WORLD_SIZE)
        group._on_message({"t": "record", **header}, b"")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert not group._views._views


def test_executions_that_were_made_up_are_forgotten_again(tmp_path):
    group = lost_group(tmp_path)
    for number in range(5000):
        header = {"seq": number + 1, "at": 1.0, "kind": "begin", "execution_id": f"e-{number}", "ranks": "0-2"}
        group._on_message({"t": "record", **header}, b"code")
    assert len(group._views._views) <= 1000
    assert len(group.executions._codes) <= 4001
    assert len(group.executions.counts) <= 4001


def test_a_header_as_long_as_the_file_is_no_header():
    frame = encode_frame({"seq": 1, "kind": "note", "at": 1.0, "x": "y" * 1000})
    assert len(list(scan(record_prefix(frame) + frame))) == 1
    long = b"\x7f\xff\xff\xff\0\0\0\0" + b"x" * 100
    assert not list(scan(record_prefix(long) + long))


@pytest.mark.parametrize("payload", [b"[]", b"1", b"{", b"[" * 100_000, b'{"data":' + b"[" * 200 + b"]" * 200 + b"}"])
def test_what_is_no_content_is_named_as_that(payload):
    with pytest.raises(DamagedContentError):
        read_content(payload)


def test_content_of_any_shape_has_the_shape_of_an_output():
    content = read_content(b'{"data": 3, "traceback": "x", "ename": [1], "transient": 7, "execution_count": -1e999}')
    assert content["data"] == {}
    assert content["traceback"] == []
    assert content["ename"] == "[1]"
    assert (content["display_id"], content["execution_count"]) == (None, None)
    assert "MB is too large" in read_content(b" " * 100, max_bytes=99)["data"]["text/plain"]


group_files = (
    st.binary(max_size=30)
    | st.sampled_from([b"[" * 100_000, b'{"spec": NaN}'])
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {},
        optional={
            "spec": st.builds(
                lambda changes: {**SPEC, **changes}, st.dictionaries(st.sampled_from([*SPEC]), json_values)
            )
            | json_values,
            "environment": json_values,
            "created_at": json_values,
            "agent_pid": json_values,
        },
    ).map(lambda value: json.dumps(value).encode())
)


@settings(settings.get_profile("channels"))
@given(group_files)
def test_whatever_stands_in_group_json_the_group_can_be_shown_or_is_none(data):
    with tempfile.TemporaryDirectory() as folder:
        directory = GroupDirectory(Path(folder))
        (Path(folder) / "group.json").write_bytes(data)
        content = directory.read_group_json()
        group = GroupMirror(directory, "s-1", lambda topic: None)
        assert not group.agent_lives()
        if content.get("spec"):
            group.status.take_remains(content)
            group.mark_lost("")
            group.mark_silent()
            shown = group.model()
            json.dumps(shown, allow_nan=False)
            assert 1 <= shown["world_size"] <= 4096


def test_a_lost_group_has_the_logs_of_ranks_that_left_it_in_a_resize(tmp_path):
    write_group_json(tmp_path, GroupSpec("g-1", "g", 1, "cpu", "gloo", "/"), {}, 0.0, most_ranks=3)
    group = GroupMirror(GroupDirectory(tmp_path), "s-1", lambda topic: None)
    group.status.take_remains(group.directory.read_group_json())
    group.check_had_rank(2)
    with pytest.raises(JupyterDistError, match="has no rank 3"):
        group.check_had_rank(3)


def test_a_group_whose_file_is_damaged_is_still_a_group(tmp_path):
    directory = GroupDirectory(tmp_path)
    (tmp_path / "group.json").write_text(json.dumps({"agent_pid": "x", "spec": {**SPEC, "world_size": 10**9}}))
    assert directory.read_group_json() == {"spec": {**SPEC, "world_size": 1}}
    (tmp_path / "group.json").write_text(json.dumps({"spec": 7, "protocol": 2}))
    assert directory.read_group_json()["spec"]["name"] == "damaged"
