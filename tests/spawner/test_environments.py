"""Which Pythons there are, and what is wrong with those that cannot run ranks."""

import asyncio
import sys
import textwrap
import venv
from pathlib import Path

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.environments import environments, requirements
from jupyter_dist.server.environments.environments import Environments, default_environment
from jupyter_dist.server.spawner.local import agent_environment


def spec(*argv, language="python", **fields):
    return {"spec": {"argv": list(argv), "language": language, "display_name": f"Kernel {argv[0]}", **fields}}


@pytest.fixture
def make(tmp_path):
    def make(**specs):
        async def kernel_specs():
            return specs

        return Environments(kernel_specs)

    return make


@pytest.fixture
def fake_python(tmp_path):
    """An executable that answers the probe as some Python would."""

    def write(body, name="python3"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n" + textwrap.dedent(body))
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture(scope="module")
def make_python(tmp_path_factory):
    """A real Python in which pip would list these versions; the probe runs in it."""

    def make(cuda=None, **versions):
        folder = tmp_path_factory.mktemp("python")
        venv.create(folder, symlinks=True)
        (site,) = folder.glob("lib/python*/site-packages")
        for name, version in versions.items():
            info = site / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            (site / name).mkdir()
            (site / name / "__init__.py").write_text("raise SystemExit('a probe imports nothing')")
        if cuda is not None:
            built = f"cuda: Optional[str] = '{cuda}'\nhip: Optional[str] = None\n"
            (site / "torch" / "version.py").write_text(built)
        return str(folder / "bin" / "python"), site

    return make


@pytest.fixture(scope="module")
def good_python(make_python):
    return make_python(torch="2.5.0", ipython="8.6.0", cuda="12.8")


def test_the_servers_own_python_is_one_entry_under_the_kernels_name(make):
    (only,) = asyncio.run(make(python3=spec("python", "-m", "ipykernel_launcher")).all())
    assert (only.name, only.source, only.python, only.problem) == ("python3", "server", sys.executable, None)
    assert only.torch_version is not None
    (server,) = asyncio.run(make().all())
    assert server.name == "server"


def test_kernels_of_other_languages_are_left_out(make):
    found = make(ir=spec("/usr/bin/R", language="R"), conda=spec("/opt/conda/bin/conda", "run"))
    assert [environment.name for environment in asyncio.run(found.all())] == ["server"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("""echo '{"python_version": "3.8.10", "paths": []}'\n""", "is Python 3.8.10; ranks need 3.10 or newer"),
        ("echo not json\n", "is not a working Python 3"),
        ("echo broken install >&2; exit 1\n", "broken install"),
        ("exit 0\n", "no output"),
    ],
)
def test_problems_name_the_interpreter_and_what_to_do(make, fake_python, body, words):
    python = fake_python(body)
    _, found = asyncio.run(make(other=spec(python)).all())
    assert found.problem.startswith(python)
    assert words in found.problem


def test_an_interpreter_that_hangs_is_given_up(make, fake_python, monkeypatch):
    monkeypatch.setattr(environments, "PROBE_SECONDS", 0.2)
    _, found = asyncio.run(make(other=spec(fake_python("exec sleep 60\n"))).all())
    assert "did not answer within 0.2 s" in found.problem


def test_an_interpreter_that_failed_once_is_asked_again(make, fake_python, tmp_path, monkeypatch):
    """A cold network drive, or no process left: what was wrong is over, and no file of the environment has changed."""
    monkeypatch.setattr(environments, "PROBE_SECONDS", 0.2)
    repaired = tmp_path / "repaired"
    answer = '{"python_version": "3.11.7", "paths": [], "versions": {}}'
    python = fake_python(f"test -e {repaired} || exec sleep 60\necho '{answer}'\n")
    found = make(other=spec(python))

    async def main():
        before = (await found.all())[1]
        repaired.touch()
        meanwhile = (await found.all())[1]
        monkeypatch.setattr(environments, "FAILED_SECONDS", 0)
        return before, meanwhile, (await found.all())[1]

    before, meanwhile, after = asyncio.run(main())
    assert before.problem == meanwhile.problem
    assert "did not answer" in before.problem
    assert (after.python_version, "did not answer" in (after.problem or "")) == ("3.11.7", False)


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"ipython": "9.0.0"}, "has no torch; run '{} -m pip install \"torch>=2.5\"'."),
        ({}, 'has no torch and ipython; run \'{} -m pip install "torch>=2.5" "ipython>=8.6"\'.'),
        (
            {"torch": "2.4.1+cu121", "ipython": "8.6.0"},
            "has torch 2.4.1+cu121; ranks need 2.5 or newer: run '{} -m pip install --upgrade \"torch>=2.5\"'.",
        ),
        (
            {"torch": "2.13.0", "ipython": "7.34.0"},
            "has ipython 7.34.0; ranks need 8.6 or newer: run '{} -m pip install --upgrade \"ipython>=8.6\"'.",
        ),
        ({"torch": "2.10.0a0+git1234", "ipython": "8.39.0"}, None),
        ({"torch": "2.5.0", "ipython": "8.6.0"}, None),
    ],
)
def test_versions_that_are_too_old_are_named_with_the_command(make, make_python, versions, words):
    python, _ = make_python(**versions)
    _, found = asyncio.run(make(other=spec(python)).all())
    assert found.problem == (words and f"{python} {words.format(python)}")


def test_least_versions_are_those_that_the_package_declares():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert declared["requires-python"] == f">={'.'.join(map(str, requirements.MIN_PYTHON))}"
    assert f"ipython>={'.'.join(map(str, requirements.MIN_IPYTHON))}" in declared["dependencies"]
    least_torch = ".".join(map(str, requirements.MIN_TORCH))
    assert declared["optional-dependencies"]["torch"] == [f"torch>={least_torch},<3"]


def test_what_torch_was_built_for_is_read_without_importing_torch(make, good_python):
    found = asyncio.run(make(gpu=spec(good_python[0])).get("gpu"))
    assert (found.accelerators, found.torch_version, found.ipython_version) == ({"cuda": "12.8"}, "2.5.0", "8.6.0")


def test_a_probe_is_remembered_until_something_is_installed(make, fake_python, good_python, tmp_path):
    count = tmp_path / "count"
    python, site = good_python
    found = make(other=spec(fake_python(f'echo x >> {count}\nexec {python} "$@"\n')))

    async def main():
        await found.get("other")
        await found.get("other")
        assert count.read_text() == "x\n"
        (site / "another").mkdir()
        await found.get("other")
        assert count.read_text() == "x\nx\n"

    asyncio.run(main())


def test_what_is_not_there(make, fake_python):
    broken = fake_python("exit 1\n")
    for arguments in [{"name": "nope"}, {"python": "/no/such/python"}, {"python": "python3"}, {"python": broken}]:
        with pytest.raises(JupyterDistError) as raised:
            asyncio.run(make().get(**arguments))
        assert raised.value.code == "bad_environment"
        assert raised.value.hint


def test_the_default_is_the_first_that_works(make, fake_python, good_python):
    found = asyncio.run(make(a=spec(fake_python("exit 1\n", "python3.1")), b=spec(good_python[0])).all())
    assert default_environment(found).name == "server"
    assert default_environment(found[1:]).name == "b"


def test_credentials_stay_in_the_server(monkeypatch):
    secrets = (
        "JUPYTER_TOKEN",
        "JPY_API_TOKEN",
        "JUPYTERHUB_API_TOKEN",
        "JUPYTERHUB_SERVICE_TOKEN",
        "JUPYTER_SERVER_PASSWORD",
    )
    for name in secrets:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("HF_TOKEN", "the user's own")
    environment = agent_environment(["numpy"], {"FROM_KERNELSPEC": "1"})
    assert not set(secrets) & set(environment)
    assert environment["HF_TOKEN"] == "the user's own"
    assert environment["FROM_KERNELSPEC"] == "1"
    assert environment["JUPYTER_DIST_PRELOAD"] == '["numpy"]'
