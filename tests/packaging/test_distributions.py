"""Wheel, sdist and npm tarball, built once as a release builds them: from a clean copy, the page by `npm run build:prod`.

`make test-package` installs what this needs; without it these tests are skipped.
"""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
for needed in ("build", "hatchling", "hatch_jupyter_builder", "twine"):
    pytest.importorskip(needed, reason="make test-package installs it")
pytestmark = pytest.mark.timeout(900)
LAB = "share/jupyter/labextensions/jupyter-dist"


def run(*command, cwd):
    # What the tests of this process see of the package is not what is built.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the three, built in a copy of what git has."""
    source = tmp_path_factory.mktemp("source")
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in files:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    (source / "node_modules").symlink_to((ROOT / "node_modules").resolve())
    run("npm", "run", "build:prod", cwd=source)
    out = tmp_path_factory.mktemp("dist")
    # Makes the sdist, and the wheel from the sdist: with the page in it, that needs neither Node nor network.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), ".", cwd=source)
    run("npm", "pack", "--silent", "--pack-destination", str(out), cwd=source)
    if kept := os.environ.get("JUPYTER_DIST_KEEP"):  # `make release-dry-run`
        shutil.copytree(out, kept, dirs_exist_ok=True)
    return out


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The Python of a new environment with the wheel; what the package needs comes from the environment of the tests."""
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", str(place), cwd=place)
    python = place / "bin" / "python"
    (path,) = built.glob("*.whl")
    run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(path), cwd=place)
    (site,) = place.glob("lib/python*/site-packages")
    # The paths alone: a .pth file of the tests' environment that names the checkout is not read.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


PROGRAM = """
import jupyter_dist
from jupyter_dist.client import Group
group = Group.start("installed", num_ranks=2, accelerator="cpu")
print(group.run("t = torch.ones(1); dist.all_reduce(t); print(t.item())").text, jupyter_dist.__file__)
group.shutdown()
"""


def test_the_wheel_runs_in_a_new_environment(installed, tmp_path, monkeypatch):
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    printed = run(str(installed), "-c", PROGRAM, cwd=tmp_path)
    assert "2.0" in printed
    assert str(installed.parents[1]) in printed


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def shared_data(wheel):
    """The page's files, by their place below share/jupyter/labextensions/jupyter-dist."""
    parts = {name: name.partition(f".data/data/{LAB}/")[2] for name in wheel.namelist()}
    return {place: name for name, place in parts.items() if place}


def test_readme_and_metadata_are_as_pypi_wants_them(built):
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built.glob("jupyter_dist-*")), cwd=built)


def test_the_wheel_says_what_it_is(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL"))
    assert {"Homepage", "Repository", "Bug Tracker"} <= set(urls)
    assert metadata["Version"] == json.loads((ROOT / "package.json").read_text())["version"]
    assert metadata["Keywords"]
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    links = re.findall(r"\]\((\S+)\)", metadata.get_payload())
    assert (
        f"https://raw.githubusercontent.com/jupyter-dist/jupyter_dist/v{metadata['Version']}/docs/images/" in links[0]
    )
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_wheel_has_types_points_and_no_leftovers(wheel):
    names = wheel.namelist()
    assert "jupyter_dist/py.typed" in names
    assert not [
        name for name in names if name.startswith(("tests/", "jupyter_dist/labextension")) or "__pycache__" in name
    ]
    points = wheel.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert "jupyter-dist = jupyter_dist.cli.main:main" in points
    assert "slurm = jupyter_dist.parts.clusters.slurm.launcher:SlurmLauncher" in points
    assert any(name.endswith("etc/jupyter/jupyter_server_config.d/jupyter_dist.json") for name in names)


def test_the_wheel_has_the_catalogues_that_jupyterlab_reads_without_their_sources(wheel):
    names = [name for name in wheel.namelist() if name.startswith("jupyter_dist/locale/")]
    languages = ("de_DE", "fr_FR", "ja_JP", "zh_CN")
    assert sorted(names) == [f"jupyter_dist/locale/{one}/LC_MESSAGES/jupyter_dist.json" for one in languages]
    points = wheel.read(next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))).decode()
    assert "[jupyterlab.locale]\njupyter_dist = jupyter_dist\n" in points


def test_the_wheel_brings_the_kernel_ranks(wheel):
    found = {
        name.partition("share/jupyter/kernels/ranks/")[2]: name for name in wheel.namelist() if "/kernels/" in name
    }
    assert set(found) == {"kernel.json", "logo-svg.svg", "logo-64x64.png"}
    spec = json.loads(wheel.read(found["kernel.json"]))
    assert (spec["display_name"], spec["interrupt_mode"]) == ("Ranks", "message")
    assert spec["argv"][1:3] == ["-m", "jupyter_dist.kernel"]
    assert "jupyter_dist/kernel/__main__.py" in wheel.namelist()
    assert not [name for name in wheel.namelist() if name.startswith("jupyter_dist/kernel/spec")]


def test_the_page_in_the_wheel_is_a_release_build_with_the_licences_of_what_it_bundles(wheel):
    page = shared_data(wheel)
    assert {"package.json", "install.json", "static/style.js"} <= set(page)
    assert not [place for place in page if place.endswith(".map")]
    licences = json.loads(wheel.read(page["static/third-party-licenses.json"]))
    found = {each["name"]: each for each in licences["packages"]}
    assert found["uplot"]["licenseId"] == "MIT"
    assert all(each["licenseId"] and each["extractedText"] for each in found.values())


def test_the_sdist_holds_the_built_page_and_the_licence(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "jupyter_dist/labextension/static/style.js"} <= names
    assert not [name for name in names if name.startswith(("node_modules", "ui-tests"))]


def test_the_npm_package_has_typed_tokens(built):
    (path,) = built.glob("*.tgz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"lib/index.js", "lib/index.d.ts", "lib/tokens.d.ts", "labextension/style/index.css", "LICENSE"} <= names
    assert not [name for name in names if ".spec." in name and name.startswith("lib/")]
