"""What builds, tests and releases the package takes nothing from others by a name that they can give to something else."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob(".github/actions/*/action.yml")])
RELEASES = {"prep-release.yml", "publish-release.yml"}


def content(path):
    return yaml.safe_load(path.read_text())


def steps(found):
    jobs = found["jobs"].values() if "jobs" in found else [found["runs"]]
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_no_text_of_others_is_part_of_a_shell_line(path):
    for step in steps(content(path)):
        action = step.get("uses", "./")
        assert action.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert not re.search(r"\$\{\{(?!\s*matrix\.)", step.get("run", "")), step


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name == "workflows"], ids=lambda path: path.stem
)
def test_only_releases_may_write(path):
    found = content(path)
    rights = [found["permissions"], *(job.get("permissions", {}) for job in found["jobs"].values())]
    if path.name not in RELEASES:
        assert all(right == "read" for given in rights for right in given.values()), rights


def test_all_that_is_taken_from_others_is_watched():
    watched = {
        update["package-ecosystem"]: update["directories"]
        for update in content(ROOT / ".github/dependabot.yml")["updates"]
    }
    assert watched.keys() == {"github-actions", "pip", "npm"}
    for folder in (folder for folders in watched.values() for folder in folders):
        assert (ROOT / folder.lstrip("/")).is_dir()


def test_no_second_index_can_give_other_packages_than_torch():
    files = [*FILES, ROOT / "Dockerfile", ROOT / "Makefile", ROOT / "tests" / "matrix" / "environments.py"]
    for path in files:
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
        assert not [line for line in lines if re.search("EXTRA_INDEX|extra-index", line)], path
