"""The files around the code: workflows call existing targets, and services find their files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": [".github/workflows/*.yml"],
    "vendor.github-actions": [".github/actions/*/action.yml"],
    "vendor.github-issue-forms": [".github/ISSUE_TEMPLATE/[!c]*.yml"],
    "vendor.github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.dependabot": [".github/dependabot.yml"],
    "vendor.readthedocs": [".readthedocs.yaml"],
}


def steps(path):
    content = yaml.safe_load(path.read_text())
    jobs = content.get("jobs", {"action": content.get("runs", {})})
    return [step for job in jobs.values() for step in job.get("steps", ())]


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".github/actions/setup/action.yml"], ids=lambda path: path.name)
def test_workflows_call_targets_of_the_makefile(path):
    targets = set(re.findall(r"^([\w./-]+(?: [\w./-]+)*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets = {name for line in targets for name in line.split()}
    text = "\n".join(step.get("run", "") for step in steps(path))
    called = {
        name.replace("${{ matrix.shard }}", "1") for name in re.findall(r"make ((?:[\w./-]|\$\{\{.*?\}\})+)", text)
    }
    assert called <= targets
    assert called or "jupyter_releaser" in path.read_text()


def test_every_part_that_ci_runs_is_in_a_workflow():
    script = (ROOT / ".ci" / "run").read_text()
    (beside,) = re.findall(r"\bWITH=(\S+)", script)
    command = script.splitlines()[-1]
    (tests,) = re.findall(r"^TESTS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    ran = f"{command.partition('setup ')[2]} {tests} {beside}"
    parts = set(ran.replace("+", " ").split()) - {"test", "extras"}
    assert {"lint", "test-python", "test-browser", "test-package"} <= parts
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert not [
        part
        for part in parts
        if not re.search(rf"run: (make|python3 .ci/parts.py --again)( [a-z-]+)* {part}\b", workflow)
    ]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_are_as_their_services_want_them(schema):
    pytest.importorskip("check_jsonschema", reason="make test-package installs it")
    paths = [str(path) for pattern in SCHEMAS[schema] for path in ROOT.glob(pattern)]
    assert paths
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_recipe_needs_what_the_package_needs():
    tomllib = pytest.importorskip("tomllib")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    text = re.sub(r"\$\{\{.*?\}\}", "x", (ROOT / ".ci" / "conda" / "recipe.yaml").read_text())
    recipe = yaml.safe_load(text)["requirements"]["run"]
    # conda-forge calls some packages "python-" and their name on PyPI.
    names = {re.split(r"[ >=<]", line)[0].removeprefix("python-").replace("-", "_") for line in recipe}
    names -= {"python", "__linux"}
    assert names == {re.split(r"[>=<]", line)[0].replace("-", "_") for line in declared}


def test_the_npm_package_says_where_its_types_are():
    package = json.loads((ROOT / "package.json").read_text())
    assert package["exports"]["."] == {"types": "./" + package["types"], "default": "./" + package["main"]}
