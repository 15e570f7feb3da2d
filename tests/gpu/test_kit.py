"""The programs of this folder start where there is no GPU: they are needed seldom, on machines that are lent for minutes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run(*arguments):
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=300, env=env, check=False
    )


@pytest.mark.parametrize("program", ["facts", "product"])
def test_every_experiment_of_a_plan_exists(program):
    listed = {line.split()[0] for line in run(program, "--list").stdout.splitlines()}
    words = [line.split() for line in (HERE / "run.sh").read_text().splitlines()]
    planned = {
        name
        for line in words
        for at, word in enumerate(line)
        if word == "lane"
        for name in (after.rstrip(";") for after in line[at + 3 :])
        if line[at + 2] == program and name.isidentifier()
    }
    assert planned
    assert planned <= listed


def test_a_hang_on_the_cpu_goes_through_the_same_steps(tmp_path):
    out = tmp_path / "facts.jsonl"
    done = run("facts", "--dry", "--out", str(out), "two_recorders")
    assert done.stdout.startswith("two_recorders: ok"), done.stdout + done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    # Of a build for the CPU there is the second recorder alone, and it is gloo's.
    assert any("_dump_fr_trace_json" in json.dumps(line) for line in lines), lines
