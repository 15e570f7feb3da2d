"""The arguments and results of the client are typed: mypy finds wrong ones, and so does the client before a request."""

import re
import subprocess
import sys

import pytest

from jupyter_dist.client import AsyncClient, AsyncGroup, Client, Group, JupyterDistError
from jupyter_dist.client.blocking.loop import LoopThread
from jupyter_dist.client.servers import Server
from jupyter_dist.protocol.operations import BY_NAME

# Each line with an error has its code behind it.
CALLS = """
from jupyter_dist.client import AsyncClient, AsyncGroup, Client, Execution, Group, Result


def right(client: Client, group: Group) -> None:
    started: Group = client.start("t", num_ranks=2, devices="all", env={"A": "1"}, grace_seconds=0)
    Group.start("t", client=client, backend="gloo", launcher_options={"partition": "gpu"})
    result: Result = group.run("1", "0", stream=True, check=True, ask=False, silent=True, notebook="a.ipynb")
    execution: Execution = group.submit("1", cell_id="c", stop_on_error=False, allow_stdin=True)
    group.begin("1", ask=lambda question: None, after=None)
    group.profile("1", trace="t.json", stream=True, empty_cache=True)


async def also_right(client: AsyncClient, group: AsyncGroup) -> None:
    await client.start("t", num_ranks=2)
    await group.run("1", "0", silent=True)
    await (await group.submit("1", silent=True)).result()


async def wrong(client: Client, group: Group, aclient: AsyncClient, agroup: AsyncGroup) -> None:
    client.start("t", num_rank=2)  # call-arg
    client.start("t", num_ranks="2")  # arg-type
    Group.start("t", nranks=2)  # call-arg
    group.run("1", rank="0")  # call-arg
    group.run("1", silnt=True)  # call-arg
    group.run("1", silent="yes")  # arg-type
    group.submit("1", stream=True)  # call-arg
    group.begin("1", cellid="c")  # call-arg
    group.profile("1", traces="t.json")  # call-arg
    await aclient.start("t", num_rank=2)  # call-arg
    await agroup.run("1", rank="0")  # call-arg
    await agroup.submit("1", silnt=True)  # call-arg
    await agroup.profile("1", traces="t.json")  # call-arg
"""

if "trace_file" not in BY_NAME:  # without the part that profiles
    CALLS = "".join(line for line in CALLS.splitlines(keepends=True) if ".profile(" not in line)


def test_mypy_refuses_wrong_calls_and_no_others(tmp_path):
    path = tmp_path / "calls.py"
    path.write_text(CALLS)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path),
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found = {int(match[1]): match[2] for match in re.finditer(r"calls\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout)}
    marked = {
        number: match[1]
        for number, line in enumerate(CALLS.splitlines(), 1)
        if (match := re.search(r"# ([\w-]+)$", line))
    }
    assert found == marked, done.stdout + done.stderr


@pytest.fixture(scope="module")
def nowhere():
    """A client whose server does not run: whatever it requests is an error of another code."""
    loop = LoopThread()
    client = Client(AsyncClient(Server("http://127.0.0.1:9/")), loop)
    yield client
    client.close()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda client, _: client.start("t", num_rank=2), "no argument 'num_rank'. Did you mean 'num_ranks'?"),
        (lambda *_: Group.start("t", clint=None), "no argument 'clint'. Did you mean 'client'?"),
        (lambda _, group: group.run("1", rank="0"), "no argument 'rank'. Did you mean 'ranks'?"),
        (lambda _, group: group.run("1", streams=True), "no argument 'streams'. Did you mean 'stream'?"),
        (lambda _, group: group.submit("1", silnt=True), "no argument 'silnt'. Did you mean 'silent'?"),
        pytest.param(
            *(lambda _, group: group.profile("1", traces="t"), "no argument 'traces'. Did you mean 'trace'?"),
            marks=pytest.mark.part("profile"),
        ),
        (lambda _, group: group.run("1", zzz=1), "no argument 'zzz'. Known arguments: after, allow_stdin, "),
    ],
)
def test_a_wrong_argument_is_refused_before_a_request(nowhere, call, sentence):
    group = Group(AsyncGroup(nowhere._client, {"id": "1", "name": "t", "protocol": 99}), nowhere)
    with pytest.raises(JupyterDistError) as found:
        call(nowhere, group)
    assert found.value.code == "bad_request"
    assert sentence in str(found.value)
