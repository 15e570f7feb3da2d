"""Each option of a start is one row of StartOptions, and commands and `%dist_init` take all of them."""

import argparse
import re
from importlib.util import find_spec
from typing import Literal

import pytest

from jupyter_dist.cli.commands.groups import start_fields
from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.client.asynchronous.arguments import placed
from jupyter_dist.client.startoptions import OPTIONS, add_start_options, given_options
from jupyter_dist.magics.distmagics import init_parser
from jupyter_dist.protocol.field import OptionField, OptionRow
from jupyter_dist.protocol.parts import PARTS
from jupyter_dist.protocol.schemas import beginnings, body_schema, fields_of, start_rows
from jupyter_dist.protocol.wire.requests import StartOptions
from jupyter_dist.server import startrows

WORDS = """--environment base --accelerator cpu -d 0,1 -n 2 --preset debug --launcher slurm --launcher-option partition=gpu
--launcher-option nodes=2 --num-nodes 2 --ranks-per-node 4,8 --backend gloo --notebook a.ipynb --env A=1 --env B=x=y
--park one --park two --park-after-seconds 9 --save-every-seconds 60.5 --save-before-end-seconds 0 --saves-kept 3
--restore saves/last --no-checks --python /usr/bin/python3 --cwd /tmp"""
GIVEN = {
    "environment": "base",
    "accelerator": "cpu",
    "devices": [0, 1],
    "num_ranks": 2,
    "preset": "debug",
    "launcher": "slurm",
    "launcher_options": {"partition": "gpu", "nodes": "2"},
    "num_nodes": 2,
    "ranks_per_node": [4, 8],
    "backend": "gloo",
    "notebook": "a.ipynb",
    "env": {"A": "1", "B": "x=y"},
    "park": ["one", "two"],
    "park_after_seconds": 9.0,
    "save_every_seconds": 60.5,
    "save_before_end_seconds": 0.0,
    "saves_kept": 3,
    "restore": "saves/last",
    "checks": False,
    "python": "/usr/bin/python3",
    "cwd": "/tmp",
}

OPTIONS_OF_PARTS = {
    "parking": {"park", "park_after_seconds"},
    "saves": {"save_every_seconds", "save_before_end_seconds", "saves_kept", "restore"},
    "checks": {"checks"},
}
MISSING = {name for part, names in OPTIONS_OF_PARTS.items() if find_spec(f"{PARTS}.{part}") is None for name in names}
GIVEN = {name: value for name, value in GIVEN.items() if name not in MISSING}
for name in MISSING:
    WORDS = re.sub(rf"--(no-)?{name.replace('_', '-')}( [^-]\S*)?(?=\s|$)", "", WORDS)


def test_every_option_is_there_in_each_face():
    options = {*fields_of(StartOptions), *beginnings()}
    assert set(OPTIONS) == options == set(GIVEN)
    for command in ("start", "run"):
        assert options <= {action.dest for action in COMMANDS[command].load()().parser()._actions}, command
    in_magic = {"num_ranks": "num_processes", "devices": "gpu_ids"}  # nbdistributed's words
    assert {in_magic.get(name, name) for name in options} <= {action.dest for action in init_parser()._actions}


def test_options_are_read_as_the_request_has_them():
    parser = argparse.ArgumentParser()
    add_start_options(parser)
    assert given_options(parser.parse_args(WORDS.split())) == GIVEN
    assert given_options(parser.parse_args([])) == {}
    started = COMMANDS["start"].load()().parser()
    assert start_fields(started.parse_args(["--notebook", "a.ipynb"])).keys() == {"notebook", "python"}
    assert start_fields(started.parse_args(["--env", "A=1"])).keys() == {"env", "python", "cwd"}


def test_rows_say_which_fields_are_paths(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    started = COMMANDS["start"].load()().parser()
    assert start_fields(started.parse_args(["--cwd", "a"]))["cwd"] == str(tmp_path / "a")
    given = {"cwd": "~/a", "notebook": "b/c.ipynb"}
    assert placed(given, StartOptions, is_private=True) == {**given, "cwd": "/home/me/a"}
    assert placed(given, StartOptions, is_private=False) == given
    assert placed({}, StartOptions, is_private=True) == {}


def test_forms_have_the_options_of_groups_with_the_limits_of_the_request():
    models = {model["name"]: model for model in startrows.start_option_rows({})}
    assert list(models) == [*(row.name for row in start_rows()), "python"]
    schemas = body_schema(StartOptions)["properties"]
    for name, model in models.items():
        schema = schemas[name]
        assert model["help"] == schema["description"]
        assert (model["minimum"], model["maximum"]) == (schema.get("minimum"), schema.get("maximum")), name
        assert model["max_length"] == schema.get("items", schema).get("maxLength"), name
    assert all(row.option.label for row in start_rows()), "else pages show its name, in English alone"


@pytest.mark.parametrize(
    ("hint", "default", "kind", "choices"),
    [
        (Literal["fast", "exact"], "fast", "text", ["fast", "exact"]),
        (list[str], ("a", "b"), "words", []),
        (list[int], [], None, []),
        (dict[str, str], {}, None, []),
        (int | None, None, "integer", []),
        (bool, False, "flag", []),
    ],
)
def test_forms_have_a_field_for_the_usual_types_of_other_packages(hint, default, kind, choices, monkeypatch):
    row = OptionRow("how_often", hint, OptionField(start="How often."), default)
    monkeypatch.setattr(startrows, "form_rows", lambda: [("theirs", row)])
    models = startrows.start_option_rows({})
    assert [model["kind"] for model in models] == ([kind] if kind else [])
    for model in models:
        assert (model["part"], model["label"], model["choices"]) == ("theirs", "How often", choices)
        assert model["default"] == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--env", "A"], "'A' has no value: write NAME=VALUE"),
        (["-d", "one"], "'one' is not a list of devices: write 0,1,3, or all"),
        (["-n", "many"], "invalid int value: 'many'"),
        (["--backend", "mpi"], "invalid choice: 'mpi'"),
    ],
)
def test_a_wrong_option_says_what_to_write(words, sentence, capsys):
    parser = argparse.ArgumentParser()
    add_start_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(words)
    assert sentence in capsys.readouterr().err
