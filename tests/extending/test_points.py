"""Every entry point with an example, as docs/extending.md has it: one server, whose environment has one more package."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError

import pytest
from faults.server import TOKEN, JupyterServer
from magickernel import kernel_of
from waits import PATIENCE

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.devices.source import DeviceSource
from jupyter_dist.server.spawner import spawner
from jupyter_dist.server.spawner.local import LocalSpawner
from jupyter_dist.system import points

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "extending.md"
TOY = "class Trainer:\n    def save(self):\n        return 'saved'\n"


def install(folder, entry_points, name="example"):
    """What pip would leave in a folder on sys.path."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def entry_points_of_docs():
    """The table of pyproject.toml in the docs, in the form in which it is installed."""
    (toml,) = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    text = re.sub(r'\[project\.entry-points\."([^"]+)"\]', r"[\1]", toml)
    return re.sub(r'^"?([\w.]+)"? = "([^"]+)"$', r"\1 = \2", text, flags=re.MULTILINE)


def part_of_docs():
    """The files of the example in docs/design/write-a-part.md, by path."""
    page = (HERE.parents[1] / "docs" / "design" / "write-a-part.md").read_text()
    return dict(re.findall(r"```\{code-block\} python\n:caption: (\S+)\n(.*?)```", page, re.DOTALL))


MORE_OPTIONS = """
from typing import Annotated
from jupyter_dist.protocol.field import Field, OptionField
REPLACE_OPTIONS = {"since": Annotated[int, Field("Since when.")]}
BEGINNINGS = {"label": Annotated[str, OptionField(start="A word that ranks begin with.", metavar="WORD")]}
"""
BEGINNING = """
from jupyter_dist.client.asynchronous.client import Beginning

async def label(client, wanted, options):
    async def begin(group):
        await group.run(f"label = {wanted!r}")
    return Beginning({"num_ranks": 1}, begin)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("s")
    for path in HERE.glob("example_*.py"):
        shutil.copy(path, home)
    (home / "toyframework.py").write_text(TOY)
    for path, code in {"uptime/__init__.py": "", **part_of_docs()}.items():
        (home / path).parent.mkdir(exist_ok=True)
        (home / path).write_text(code)
    with (home / "uptime" / "api.py").open("a") as api:
        api.write("\n\nfrom .options import UptimeOptions as GROUP_OPTIONS\n")
        api.write("REPLACE_STATES = {'young': 'no seconds'}\nERROR_CODES = {'too_old': 418}\n")
        api.write(MORE_OPTIONS)
    (home / "uptime" / "client").mkdir()
    (home / "uptime" / "client" / "__init__.py").write_text("__all__ = []\n")
    (home / "uptime" / "client" / "beginning.py").write_text(BEGINNING)
    install(home, entry_points_of_docs())
    (home / "boards.json").write_text(json.dumps([{"name": "Board 9000", "celsius": 41}]))
    env = {"BOARDS": str(home / "boards.json"), "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(home)])}
    server = JupyterServer(home, env=env, spawner="nice", on_server_stop="end", uptime_limit_seconds=90.0)
    yield server
    server.end()


@pytest.fixture(scope="module")
def group(server):
    return server.start(2, uptime_limit_seconds=60)["id"]


def said(view):
    return [
        (item["ranks"], item["output"].get("text") or item["output"]["data"]["text/plain"]) for item in view["items"]
    ]


def test_a_spawner_of_another_package_starts_the_groups(server, group):
    assert said(server.run(group, "import os\nos.nice(0)")) == [("0-1", str(min(19, os.nice(0) + 5)))]


def test_a_part_of_another_package_is_an_address_a_command_and_a_tool(server, group):
    """As docs/design/write-a-part.md has it: four files, one more for options, and no other line."""
    assert part_of_docs().keys() == {f"uptime/{name}.py" for name in ("api", "rank", "agent", "server", "options")}
    paths = {"JUPYTER_RUNTIME_DIR": str(server.runtime), "JUPYTER_TOKEN": TOKEN}
    env = {**os.environ, **paths, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(server.home)])}
    run = partial(subprocess.run, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True)
    command = [sys.executable, "-c", "from jupyter_dist.cli.main import main; main()", "uptime", group]
    seconds = json.loads(run([*command, "--json"]).stdout)["seconds"]
    assert seconds.keys() == {"0", "1"}
    assert min(seconds.values()) > 0
    shown = run(command).stdout
    assert re.fullmatch(r"rank 0: \d+ s\nrank 1: \d+ s\n", shown), shown
    if find_spec("jupyter_dist.parts.mcp") is None:
        return
    tool = "from jupyter_dist.parts.mcp.tools import offered; print(offered(read_only=True)['uptime'].description)"
    assert run([sys.executable, "-c", tool]).stdout == "Show for how long each rank of a group has been running.\n"


def test_an_option_of_a_part_of_another_package_is_a_row(server, group):
    """A setting of the server, an option of each start, and what the group's agent gets."""
    silent = server.start(1, name="silent")["id"]
    kept = {json.loads(path.read_text())["spec"]["group_id"]: path for path in server.runtime.rglob("group.json")}
    options = {name: json.loads(kept[name].read_text())["spec"]["options"] for name in (group, silent)}
    assert [found["uptime_limit_seconds"] for found in options.values()] == [60, 90.0]
    with pytest.raises(HTTPError, match="400"):
        server.start(1, uptime_limit_seconds=-1)
    (shown,) = (row for row in server.ask("GET", "start_options")["options"] if row["part"] == "uptime")
    assert (shown["name"], shown["label"], shown["kind"]) == ("uptime_limit_seconds", "Say so after (s)", "number")
    assert (shown["minimum"], shown["maximum"], shown["default"]) == (0, None, 90.0)
    assert shown["help"].startswith("Say so when ranks have run for so long")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(server.home)])}
    code = "from jupyter_dist.cli.listing import COMMANDS; print(COMMANDS['start'].load()().parser().format_help())"
    help_ = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert "--uptime-limit-seconds SECONDS" in help_


def test_parts_have_words_for_replaced_ranks_and_codes_of_errors(server, group):
    with pytest.raises(HTTPError, match="409"):  # no rank is dead
        server.ask("POST", f"groups/{group}/replace", {"state": "young", "since": 3})
    with pytest.raises(HTTPError, match="400"):
        server.ask("POST", f"groups/{group}/replace", {"state": "young", "until": 3})
    with pytest.raises(HTTPError, match="400"):
        server.ask("POST", f"groups/{group}/replace", {"state": "old"})
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(server.home)])}
    code = "from jupyter_dist.server.http.base import STATUS_OF_CODE; print(STATUS_OF_CODE['too_old'])"
    code += (
        "; from jupyter_dist.cli.listing import COMMANDS; print(COMMANDS['replace'].load()().parser().format_help())"
    )
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert said.startswith("418\n")
    assert "young: no seconds" in said
    assert "--since" in said


def test_parts_have_what_ranks_of_a_new_group_begin_with(server):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(server.home)])}
    code = (
        "from jupyter_dist.client import Client\n"
        f"with Client.connect({server.info['url']!r}, {TOKEN!r}) as client:\n"
        "    print(client.start('labelled', label='first').run('label').values)\n"
        "    print(client.start('own', label='second', num_ranks=2).run('label').values)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert said == """{0: "'first'"}\n{0: "'second'", 1: "'second'"}\n"""


def test_a_launcher_of_another_package_is_there_and_keeps_the_contract(server, tmp_path):
    """Its package and its test lie in a folder of their own, with nothing of ours but what is installed."""
    assert "prefix" in {found["name"] for found in server.ask("GET", "launchers")["launchers"]}
    shutil.copy(HERE / "example_launcher.py", tmp_path)
    shutil.copy(HERE / "example_contract.py", tmp_path / "test_example.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    install(tmp_path, "[jupyter_dist.launchers]\nprefix = example_launcher:PrefixLauncher\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(tmp_path)])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "6 passed" in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]


def test_a_device_reader_of_another_package_is_read(server):
    (board,) = (found for found in server.ask("GET", "devices")["devices"] if found["accelerator"] == "board")
    assert (board["index"], board["name"], board["temperature_celsius"]) == (0, "Board 9000", 41)


def test_a_fix_of_another_package_is_made_when_its_framework_is_imported(server, group):
    view = server.run(group, "import toyframework\ntoyframework.Trainer().save()")
    notice = "save() on 2 ranks: one of them writes.\n"
    assert said(view) == [("0-1", notice), ("0-1", "'saved'")]
    assert "toyframework of unknown version: save() says that one rank writes" in server.download(group, 1)


def test_an_app_of_another_package_is_set_up_on_ranks(server, group):
    code = "from jupyter_dist.apps.registry import apps\napps.use('seeds')\nfirst = random.random()\n"
    view = server.run(group, code + "apps.call('again')\nfirst == random.random()")
    assert said(view) == [("0-1", "True")]


def test_a_magic_of_another_package_is_there_in_a_kernel(server):
    env = {"JUPYTER_RUNTIME_DIR": str(server.runtime), "JUPYTER_TOKEN": TOKEN}
    path = {"PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(server.home)])}
    with kernel_of(server.home / "lesson.ipynb", **env, **path) as kernel:
        assert kernel.run("%dist_init -n 2").status == "ok"
        assert kernel.run("%seed 7").text.endswith("Seeded 2 ranks with 7.\n")
        assert kernel.run("%%distributed\ntorch.initial_seed()").said == [("0-1", "7")]


@pytest.fixture(scope="module")
def without_metadata(tmp_path_factory):
    """Run code where this package is on PYTHONPATH and not installed, with all other packages."""
    folder = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("jupyter_dist", "_editable_impl_jupyter_dist")):
            (folder / path.name).symlink_to(path)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(folder)])}
    env |= {"IPYTHONDIR": str(tmp_path_factory.mktemp("ipython")), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}

    def run(code):
        command = [sys.executable, "-S", "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_without_our_metadata_the_server_says_which_launchers_are_missing(without_metadata):
    said = without_metadata("""
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.launchers.registry import Launchers
print(Launchers().get("processes").name)
try:
    Launchers().get("slurm")
except JupyterDistError as err:
    print(err)
""")
    assert said.splitlines()[0] == "processes"
    assert (
        "There is no launcher 'slurm'. Launchers: processes. The launchers of batch queues, Ray and Kubernetes are missing"
        in said
    )
    assert "install jupyter_dist again with pip" in said


def test_without_our_metadata_a_kernel_has_the_magics_of_the_core_and_says_what_is_missing(without_metadata):
    said = without_metadata("""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
shell.run_line_magic("load_ext", "jupyter_dist")
print(sorted({"dist_init", "makedip"} & set(shell.magics_manager.magics["line"])))
""")
    warning, names = said.splitlines()
    assert warning.startswith("Magics of other tools (%makedip, %%dip, %timeline_save) are missing")
    assert names == "['dist_init']"


def test_the_installed_metadata_lists_our_own_extensions():
    """If not: `make setup`, or `pip install --no-deps -e .`."""
    tables = re.findall(
        r'^\[project\.entry-points\."(.+?)"\]\n(.*?)\n\n', (HERE.parents[1] / "pyproject.toml").read_text(), re.M | re.S
    )
    wanted = {(group, *row) for group, rows in tables for row in re.findall(r'^(\w+) = "(.+)"$', rows, re.M)}
    assert len(wanted) >= 5
    installed = metadata.distribution("jupyter_dist").entry_points
    assert wanted <= {(point.group, point.name, point.value) for point in installed}


def test_an_unknown_spawner_is_named_with_those_that_there_are():
    with pytest.raises(JupyterDistError, match="no spawner 'slrum'") as raised:
        spawner.find("slrum")
    assert raised.value.hint == "DistApp.spawner is one of: local."
    assert spawner.find("local") is LocalSpawner


def test_a_spawner_that_cannot_be_used_here_says_why(monkeypatch):
    monkeypatch.setattr(LocalSpawner, "problem", classmethod(lambda cls: "there is no queue. Ask your administrator."))
    with pytest.raises(JupyterDistError, match="cannot be used here: there is no queue") as raised:
        spawner.find("local")
    assert raised.value.code == "bad_environment"


def test_a_point_that_cannot_be_loaded_is_named_and_left_out(tmp_path, monkeypatch, caplog):
    install(
        tmp_path, "[jupyter_dist.device_readers]\ngone = no_such_module:Reader\nother = json:JSONDecoder\n", "broken"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = points.load("jupyter_dist.device_readers", DeviceSource, {})
    assert not {"gone", "other"} & set(found)
    assert (
        "'gone' (jupyter_dist.device_readers, of broken) is left out: No module named 'no_such_module'" in caplog.text
    )
    assert "is not a subclass of jupyter_dist.server.devices.source.DeviceSource" in caplog.text


def test_the_docs_show_what_is_tested():
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL):
        assert any(block.strip() in path.read_text() for path in HERE.glob("example_*.py")), block
