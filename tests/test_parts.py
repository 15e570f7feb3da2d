"""What `make test` runs again, and what it reports of that (.ci/parts.py, Makefile)."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKEFILE = """
good:
	@echo good
seldom:
	@echo 'FAILED tests/test_a.py::test_seldom - assert 1 == 2'; exit 1
seldom-again:
	@echo 'now it is good'
pages:
	@printf '  1) tests/a.spec.ts:7:5 \u203a a page ───\\n    Error: it is empty\\n'; exit 1
pages-again:
	@true
test-first:
	@echo 'FAILED tests/test_c.py::test_short - assert 5 == 6'; exit 1
test-first-again:
	@exit $(STATUS)
after:
	@test "$(AFTER_FIRST)" = 1
often often-again:
	@echo 'FAILED tests/test_b.py::test_often - assert 3 == 4'; exit 1
tries:
	@printf '  1 flaky\\n    tests/b.spec.ts:9:5 \u203a another page ───\\n  5 passed\\n'
orphans:
	@$(PYTHON) -c "$$ORPHAN"
whole:
	@$(PARTS) --again good+seldom
"""
# Its grandchild, whose parent ends at once, computes for most of a second.
ORPHAN = """
import os, time
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.write(write, str(os.getpid()).encode())
        while time.process_time() < 0.7:
            pass
    os._exit(0)
os.wait()
found, deadline = "/proc/" + os.read(read, 20).decode(), time.monotonic() + 60.0
while os.path.exists(found) and time.monotonic() < deadline:
    time.sleep(0.05)
"""
PARTS = f"{sys.executable} {ROOT / '.ci' / 'parts.py'}"


def parts(folder, *targets, status=0):
    (folder / "Makefile").write_text(MAKEFILE)
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKE", "MAKEFLAGS", "MAKELEVEL", "AFTER_FIRST")
    }
    done = subprocess.run(
        [*PARTS.split(), *targets],
        cwd=folder,
        env={**environ, "STATUS": str(status), "PARTS": PARTS, "PYTHON": sys.executable, "ORPHAN": ORPHAN},
        capture_output=True,
        text=True,
        check=False,
    )
    rows, _, rest = done.stdout.rpartition("\npart ")[2].partition("\n\n")
    return done.returncode, dict(row.split(maxsplit=1) for row in rows.splitlines()[1:]), rest


def test_what_fails_once_is_run_again_when_all_else_is_done_and_is_named(tmp_path):
    status, rows, rest = parts(tmp_path, "--again", "seldom+pages", "good")
    assert status == 0
    assert "ok at the second run" in rows["seldom"]
    assert "ok at the second run" in rows["pages"]
    assert rows["good"].endswith("ok")
    named = [line for line in rest.splitlines() if line.startswith("second run: ")]
    assert named == [
        "second run: FAILED tests/test_a.py::test_seldom - assert 1 == 2",
        "second run: 1) tests/a.spec.ts:7:5 \u203a a page",
    ]
    assert "Error: it is empty" in rest


def test_nothing_else_is_run_after_short_tests_that_fail_twice(tmp_path):
    status, rows, _ = parts(tmp_path, "--again", "test-first", "after")
    assert (status, rows["after"].endswith("ok"), "ok at the second run" in rows["test-first"]) == (0, True, True)
    status, rows, rest = parts(tmp_path, "--again", "test-first", "good", status=1)
    assert (status, list(rows)) == (1, ["test-first"])
    assert "FAILED tests/test_c.py::test_short" in rest


def test_what_fails_twice_has_failed_and_so_has_what_is_not_to_be_run_again(tmp_path):
    status, rows, rest = parts(tmp_path, "--again", "often", "good")
    assert (status, "failed twice" in rows["often"]) == (1, True)
    assert "second run: " not in rest
    status, rows, rest = parts(tmp_path, "seldom")
    assert (status, rows["seldom"].endswith("failed")) == (1, True)
    assert "FAILED tests/test_a.py::test_seldom" in rest


def test_the_report_of_all_names_the_second_runs_within_a_part(tmp_path):
    status, rows, rest = parts(tmp_path, "whole", "tries")
    assert (status, rows["whole"].endswith("ok"), rows["tries"].endswith("ok")) == (0, True, True)
    assert "second run: FAILED tests/test_a.py::test_seldom" in rest
    assert "second run: tests/b.spec.ts:9:5 \u203a another page\n" in rest


def test_the_cpu_time_of_a_part_has_that_of_orphans(tmp_path):
    status, rows, _ = parts(tmp_path, "orphans+good")
    assert status == 0
    # How long it took, its CPU time, and the result.
    assert re.fullmatch(r"\d+ s +[1-9] s +ok", rows["orphans"]), rows


def make(folder, target, options=""):
    """Run one of pytest's targets on the tests of a folder."""
    own = {
        "RAY_TESTS": f"{folder} {options}",
        "FAILED": str(folder / "failed"),
        "BIN": str(Path(sys.executable).parent),
    }
    command = ["make", "--old-file=.venv/ready", target, *(f"{name}={value}" for name, value in own.items())]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


SELDOM = """
import pathlib
def test_good():
    pass
def test_seldom():
    tried = pathlib.Path(__file__).with_name("tried")
    if not tried.exists():
        tried.touch()
        raise ValueError("the first time")
"""
CRASHES = """
import os
import pytest
@pytest.mark.parametrize("number", range(3))
def test_crash(number):
    os._exit(3)
"""
CUT_OFF = """
import pytest
def test_bad():
    raise ValueError
def test_end():
    pytest.exit("no more")
"""


def test_a_second_run_has_only_what_failed_and_there_is_none_of_a_run_that_was_cut_off(tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(SELDOM)
    assert make(tmp_path, "test-ray")[0] != 0
    status, output = make(tmp_path, "test-ray-again")
    assert (status, "1 passed" in output) == (0, True), output
    workers = "-p secondrun --numprocesses 2 --max-worker-restart 1"
    for bad, options in ((CUT_OFF, ""), (CRASHES, workers)):
        file.write_text(bad)
        assert make(tmp_path, "test-ray", options)[0] != 0
        assert not (tmp_path / "failed" / "ray").exists()
        assert make(tmp_path, "test-ray-again", options)[0] != 0
