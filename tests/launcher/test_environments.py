"""Which Pythons there are, and what is wrong with those that cannot run ranks."""

import asyncio
import sys
import textwrap

import pytest

from jupyter_dist.launcher import environments
from jupyter_dist.launcher.environments import Environments, default_environment
from jupyter_dist.launcher.local import agent_environment
from jupyter_dist.protocol.errors import JupyterDistError


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


def answer(**fields):
    import json

    found = {"python_version": "3.12.1", "torch_version": "2.9.0", "ipython_version": "9.0", "cuda": None, "paths": []}
    return f"echo '{json.dumps({**found, **fields})}'\n"


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
        (answer(python_version="3.8.10"), "is Python 3.8.10; ranks need 3.10 or newer"),
        (answer(torch_version=None), "has no torch; run '"),
        (answer(torch_version=None, ipython_version=None), "has no torch and ipython"),
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


def test_cuda_is_read_without_importing_torch(make, fake_python):
    found = asyncio.run(make(gpu=spec(fake_python(answer(cuda="12.8")))).get("gpu"))
    assert (found.cuda, found.torch_version) == ("12.8", "2.9.0")


def test_a_probe_is_remembered_until_something_is_installed(make, fake_python, tmp_path):
    count = tmp_path / "count"
    site = tmp_path / "site"
    site.mkdir()
    python = fake_python(f"echo x >> {count}\n" + answer(paths=[str(site)]))
    found = make(other=spec(python))

    async def main():
        await found.get("other")
        await found.get("other")
        assert count.read_text() == "x\n"
        (site / "torch").mkdir()
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


def test_the_default_is_the_first_that_works(make, fake_python):
    found = asyncio.run(make(a=spec(fake_python("exit 1\n", "python3.1")), b=spec(fake_python(answer()))).all())
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
