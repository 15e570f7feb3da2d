"""States that users have, saved here and restored in another process, against a process that never saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import randomtypes

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs" / "reference" / "saved-states.md"
MODES = ("save", "restore", "control")  # control last: it writes own modules again


def _run(mode: str, folder: Path, seed: str = "") -> dict[str, dict[str, object]]:
    found, answers = folder / ("of-control" if mode == "control" else "of-save"), folder / f"{mode}.json"
    found.mkdir(exist_ok=True)
    variables = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}", "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "ignore", str(HERE / "runstates.py"), mode, str(found), str(answers), seed]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=variables, cwd=folder)
    assert done.returncode == 0, done.stderr
    answered: dict[str, dict[str, object]] = json.loads(answers.read_text())
    return answered


def _compare(folder: Path, seed: str = "") -> dict[str, tuple[str, list[str]]]:
    saved, restored, control = (_run(mode, folder, seed) for mode in MODES)
    found = {}
    for name in control:
        if "ModuleNotFoundError" in str(control[name]["failed"]):
            continue  # a library that this environment lacks
        assert seed or control[name]["failed"] is None, (name, control[name]["failed"])
        said = [*saved[name]["said"], *restored[name]["said"]]  # type: ignore[misc]
        is_back = restored[name]["answer"] == control[name]["answer"]
        found[name] = ("comes back" if is_back else "is named" if said else "differs silently", said)
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, list[str]]]:
    """What came of each state, and what the save or the restore named."""
    return _compare(tmp_path_factory.mktemp("states"))


def test_no_state_is_different_after_a_restore_without_a_word(outcomes: dict[str, tuple[str, list[str]]]) -> None:
    assert [name for name, (outcome, _) in outcomes.items() if outcome == "differs silently"] == []
    assert len(outcomes) > 100


@pytest.mark.parametrize("seed", [1, 2, randomtypes.POLARS])
def test_no_random_value_is_different_after_a_restore_without_a_word(tmp_path: Path, seed: int) -> None:
    if seed == randomtypes.POLARS:
        pytest.importorskip("polars")
    found = _compare(tmp_path, str(seed))
    assert [name for name, (outcome, _) in found.items() if outcome == "differs silently"] == []
    assert sum(outcome == "comes back" for outcome, _ in found.values()) > 100


def test_what_is_named_is_what_the_table_in_the_documentation_has(outcomes: dict[str, tuple[str, list[str]]]) -> None:
    rows = [line.split(" | ") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    documented = {row[0].removeprefix("| "): row[1].removesuffix(" |") for row in rows}
    shown = {name.removeprefix("+ "): outcome for name, (outcome, _) in outcomes.items()}
    assert {name: documented.get(name) for name in shown} == shown
