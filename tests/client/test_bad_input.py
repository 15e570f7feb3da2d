"""Errors of the client in a kernel are one sentence and a hint, and the kernel stays usable."""

import json
import re
from pathlib import Path
from typing import is_typeddict

import numpy as np
import pytest
from jupyter_client.manager import start_new_kernel
from waits import PATIENCE

from jupyter_dist.client import JupyterDistError
from jupyter_dist.client.connection.http import encoded
from jupyter_dist.protocol.schemas import object_schema
from jupyter_dist.protocol.wire import requests

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def cell(client, shared_group, tmp_path_factory):
    """Runs a cell; returns its error as the notebook shows it, or its text."""
    shared_group.restart()  # ranks without names of other files' tests, such as Config
    manager, kernel = start_new_kernel(cwd=str(tmp_path_factory.mktemp("kernel")))
    said = []

    def hear(message):
        if message["msg_type"] in ("stream", "execute_result"):
            content = message["content"]
            said.append(content.get("text") or content["data"]["text/plain"])

    def run(code):
        said.clear()
        reply = kernel.execute_interactive(code, timeout=PATIENCE, output_hook=hear)["content"]
        return "".join(said) if reply["status"] == "ok" else ANSI.sub("", "\n".join(reply["traceback"]))

    run("from jupyter_dist.client import *\nimport threading\ngroup = attach('shared')")
    run(
        "class Config:\n    x = 1\nimport math as maths\nhelper = len\ndef train(c: Config): return helper(maths.pi, c.x)"
    )
    yield run
    assert run("6 * 7") == "42"
    kernel.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("attach('sharde')", r"There is no group 'sharde'. Did you mean 'shared'\?"),
        ("group.run('1', '0-7')", r"There is no rank 7 .* This group has ranks 0 to 1"),
        ("group.push({'lock': threading.Lock()})", r"'lock' \(lock\) cannot be sent: .* Send its data"),
        ("group.scatter('x', range(3))", r"'x' has 3 parts for 2 ranks. Split it first: numpy.array_split\(x, 2\)"),
        ("group.scatter('x', 5)", r"'x' is of type int, which has no parts for 2 ranks. Split it first"),
        ("group.pull('x = 1')", "'x = 1' is not an expression"),
        ("group.launch((lambda lock: lambda: lock)(threading.Lock()))", "'function' .* cannot be sent: .*lock"),
        (
            "group.client.start('x', launcher='external', ranks_per_node={1, 2})",
            r"'ranks_per_node' cannot be sent: JSON has no value for type set. Give numbers",
        ),
        ("connect('http://127.0.0.1:9')", "The Jupyter server at http://127.0.0.1:9 does not respond"),
        ("connect(group.client.url, 'wrong')", "do not have permission|refuses the token"),
    ],
)
def test_it_is_one_sentence(cell, code, sentence):
    said = cell(code)
    assert said.startswith("JupyterDistError: ")
    assert "\n" not in said
    assert re.search(sentence, said)


def test_two_groups_and_no_name(cell, client):
    other = client.start("other", num_ranks=1, accelerator="cpu")
    try:
        said = cell("attach()")
        assert said == "JupyterDistError: 2 groups are running. Name one of: 'shared', 'other'."
    finally:
        other.shutdown()


def test_no_server_and_no_group(cell):
    nothing = "import os, tempfile\nheld = os.environ['JUPYTER_RUNTIME_DIR']\nwith tempfile.TemporaryDirectory() as place:\n    os.environ['JUPYTER_RUNTIME_DIR'] = place\n    "
    try:
        assert cell(nothing + "connect(private=False)") == (
            "JupyterDistError: You have no running Jupyter server with jupyter_dist. Start one: jupyter lab or jupyter server."
        )
        said = cell(nothing + "with connect() as own: attach(client=own)")
        assert said == (
            "JupyterDistError: No group is running. Start one: Group.start(num_ranks=2), or jupyter dist start -n 2."
        )
    finally:
        cell("os.environ['JUPYTER_RUNTIME_DIR'] = held")


def test_a_function_that_names_what_the_ranks_lack(cell):
    first = cell("group.launch(train, Config())")
    assert first.endswith(
        "ranks 0-1: NameError: name 'helper' is not defined The kernel has 'helper', the ranks have not: "
        "run its cell there too, or push({'helper': helper})."
    )
    cell("group.push({'helper': lambda a, b: (a, b)})")
    second = cell("group.launch(train, Config())")
    assert "The kernel has imported 'maths', the ranks have not: import it in the function." in second
    cell("group.run('import math as maths')")
    assert cell("group.launch(train, Config())").endswith("{0: (3.141592653589793, 1), 1: (3.141592653589793, 1)}")


def test_the_ranks_tracebacks_are_shown_once(cell):
    said = cell("group.run('1/0', check=True)")
    assert said.count("ZeroDivisionError") == 3  # at the traceback's head and end, and in our sentence
    assert said.startswith("[ranks 0-1]\n")
    assert said.endswith("RankError: ranks 0-1: ZeroDivisionError: division by zero")
    assert cell("group.run('1/0', check=True, stream=True)") == (
        "RankError: ranks 0-1: ZeroDivisionError: division by zero"
    )


def test_a_class_that_the_kernel_lacks(cell):
    module = "import sys, types\nsys.modules['only_there'] = types.ModuleType('only_there')\n"
    code = (
        module
        + "exec('class OfRanks: pass', vars(sys.modules['only_there']))\nit = sys.modules['only_there'].OfRanks()"
    )
    cell(f"group.run({code!r}, check=True)")
    assert cell("group.pull('it')") == (
        "JupyterDistError: Something is missing here: No module named 'only_there'. Define or import it here first."
    )


def test_what_is_asked_of_ranks_and_fails_there(cell):
    assert cell("group.pull('nothing', 1)") == "RankError: rank 1: NameError: name 'nothing' is not defined"


SPEAKS_HTTP = re.compile(r"\b(GET|POST|PUT|DELETE)\b|Idempotency|/(groups|executions|environments)\b")


def test_hints_do_not_speak_of_http_to_python_programs(client, group):
    """A field's description is the hint for a wrong value; most who read it have made no request themselves."""
    bodies = [found for found in vars(requests).values() if is_typeddict(found)]
    fields = [field for body in bodies for field in object_schema(body)["properties"].values()]
    assert len(fields) > 20
    assert [text for field in fields if SPEAKS_HTTP.search(text := field.get("description", ""))] == []
    for wrong in (
        lambda: client.start(devices="none"),
        lambda: client.start(environment="nowhere"),
        lambda: client.start(nmu_ranks=2),
        lambda: client.start(num_ranks=0),
        lambda: group.run("1", "9"),
        lambda: group.run("1", notebook=7),
        lambda: group.run(None),
        lambda: client.attach("nobody"),
        lambda: group.push({"a b": 1}),
        lambda: group.logs(9),
    ):
        with pytest.raises(JupyterDistError) as raised:
            wrong()
        assert not SPEAKS_HTTP.search(str(raised.value)), str(raised.value)


def test_numbers_of_numpy_and_paths_are_no_bad_input():
    given = {"ranks_per_node": np.array([1, 2]), "num_nodes": np.int64(2), "cwd": Path("/data")}
    assert json.loads(encoded(given)) == {"ranks_per_node": [1, 2], "num_nodes": 2, "cwd": "/data"}
