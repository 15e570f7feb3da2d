"""Prose and structure are tested too: paths in the docs exist, versions agree, files stay small."""

import ast
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from house import figures
from matrix import table

from jupyter_dist.server.environments import requirements

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "jupyter_dist").rglob("*.py"))
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_file_that_the_docs_name_exists(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    named = set(
        re.findall(r"`((?:jupyter_dist|labextension|tests|ui-tests|benchmarks|docs|examples|\.ci)/[\w./-]+)`", text)
    )
    links = {link for link in re.findall(r"\]\(([^)#]+)\)", text) if not link.startswith(("http", "mailto"))}
    missing = sorted(name for name in named if not (ROOT / name).exists())
    missing += sorted(link for link in links if not (path.parent / link).exists())
    assert not missing


def test_the_version_is_the_same_everywhere():
    version = json.loads((ROOT / "package.json").read_text())["version"]
    assert metadata.version("jupyter_dist") == version


def test_test_files_that_are_in_no_package_have_names_of_their_own():
    """Pytest imports them by their name alone: of two, it would collect one, and only if both folders are asked for."""
    alone = [path for path in (ROOT / "tests").rglob("test_*.py") if not path.with_name("__init__.py").exists()]
    names = [path.name for path in alone]
    assert [str(path.relative_to(ROOT)) for path in alone if names.count(path.name) > 1] == []


def test_no_package_of_tests_hides_a_module_of_python():
    """`tests` is in the path: torch imports cProfile, which imports profile."""
    packages = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    assert packages & sys.stdlib_module_names == set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_can_be_seen_at_once(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 60, node.name


def test_no_figure_is_above_its_ceiling():
    """`python -m tests.house NAME` prints the places behind a figure; long files are hints there."""
    found = figures.figures()
    assert {name: found[name].value for name in figures.above(found)} == {}


# An import of this package as it stands in code for another process: `from jupyter_dist.client import Client, Group`.
IMPORT = re.compile(r"from (jupyter_dist[\w.]*) import (\w+(?:, \w+)*)")
CODE = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "ui-tests" / "tests").rglob("*.ts")])


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_tests_import_exists_also_where_the_import_stands_in_a_string(path):
    """Linters do not see into strings, and an import that fails at collection leaves out a whole file of tests."""
    for module, names in IMPORT.findall(path.read_text()):
        place = ROOT.joinpath(*module.split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        assert file.exists(), module
        text = file.read_text()
        missing = [name for name in names.split(", ") if not re.search(rf"\b{name}\b", text)]
        assert [name for name in missing if not any(place.glob(f"{name}*"))] == [], module


def test_the_server_never_imports_torch():
    code = "import sys, jupyter_dist.server.extension; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_frames_of_other_threads_are_asked_for_in_one_place_alone():
    """It keeps CPython 3.11 from a crash (guard/frames.py)."""
    found = {path.name for path in SOURCES if "_current_frames(" in path.read_text()}
    assert found == {"frames.py"}


def test_there_is_no_pickle_on_any_channel_of_ours():
    for path in SOURCES:
        # Objects travel in files, between the user's own processes.
        if not {"rank", "objects"} & set(path.relative_to(ROOT).parts[1:-1]):
            assert not re.search(r"\b(cloud)?pickle\b|\.recv_pyobj|\beval\(|\bexec\(", path.read_text()), path


RANK = ROOT / "jupyter_dist" / "rank"
COMPAT = {
    RANK / "collectives" / "torch_compat.py",
    RANK / "collectives" / "torch_recorders.py",
    *(RANK / "collectives" / "revival" / f"{name}.py" for name in ("compat", "frames", "models", "shards")),
    RANK / "ipython" / "ipython_compat.py",
}
# Beside them, in what kernels share with ranks; tests/compat/test_names.py looks for them in each version.
OF_OBJECTS = {"_untyped_storage", "_indices", "_values"}
# Private names of Python itself, which tests/compat/test_names.py looks for in each version.
OF_PYTHON = {
    "_abc_register",
    "_get_dump",
    "_ncallbacks",
    "_slotnames",
    "_reset_caches",
    "_reset_registry",
    "_callback",
    "_error_callback",
    "_fields",
    "_getframe",
    "_current_frames",
    "_exit",
    "_run_exitfuncs",
    "_CHUNK_SIZE",
    "_fork_exec",
    "_asdict",
    "_replace",
    "_levelToName",
    "_nameToLevel",
    "_default_context",
    "_last_pdb_instance",
    "_scheduled",
    "_selector",
    "_feed",
    "_handle_tasks",
    "_wlock",
    "_is_fork_ctx",
}
OF_PROTOCOLS = {"_render_traceback_"}  # of IPython's documentation


def own_private_names(trees):
    """What the package itself calls with an underscore; an attribute that is set on another object than `self` may be another's."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                    yield node.attr
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def names_in(node):
    """Names of attributes and of imported modules, also where they are strings for `getattr` and its like."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("torch", "IPython"):
        yield from (*node.module.split("."), *(alias.name for alias in node.names))
    elif isinstance(node, ast.Import):
        yield from (part for alias in node.names for part in alias.name.split(".") if alias.name.startswith("torch"))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("attr"):
        yield from (each.value for each in node.args[1:2] if isinstance(each, ast.Constant))


def private_names_of_others(tree, own):
    return {name for node in ast.walk(tree) for name in names_in(node) if is_private(name) and name not in own}


def test_a_private_name_is_found_where_it_is_read_set_or_asked_for():
    tree = ast.parse(
        "import torch\ntorch.nn.Module._one = None\nsetattr(torch, '_two', 2)\ntorch._three\nself._mine = 4"
    )
    assert private_names_of_others(tree, set(own_private_names([tree]))) == {"_one", "_two", "_three"}


OF_PANDAS = {"_registered_options", "_global_config", "_accessors", "_accessor"}  # and of scikit-learn: no public names
OF_MATPLOTLIB = {"_cmaps", "_builtin_cmaps"}


def test_private_names_of_torch_and_ipython_are_in_their_two_files_alone():
    """Fixes of other frameworks have their own way: a fix asks for what it needs."""
    assert all(path.exists() for path in COMPAT)
    of_parts = [*(ROOT / "jupyter_dist" / "parts").glob("*/rank")]
    paths = [path for room in (RANK, ROOT / "jupyter_dist" / "objects", *of_parts) for path in room.rglob("*.py")]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    own = set(own_private_names(trees.values())) | OF_PYTHON | OF_PROTOCOLS | OF_OBJECTS | OF_PANDAS | OF_MATPLOTLIB
    for path in trees.keys() - COMPAT:
        found = set(private_names_of_others(trees[path], own))
        assert not found, (
            f"{path.relative_to(ROOT)}: {sorted(found)} belongs in torch_compat.py, torch_recorders.py or ipython_compat.py"
        )
    assert "_world" in set(private_names_of_others(trees[RANK / "collectives" / "torch_compat.py"], own))
    assert "_dump_fr_trace_json" in (RANK / "collectives" / "torch_recorders.py").read_text()


# Beside the table: aborting NCCL's communicators, what torch, its recorder and RAS call by that name, and the vendors' readers.
KNOW_A_VENDOR = {
    ROOT / "jupyter_dist" / "protocol" / "accelerators.py",
    *(ROOT / "jupyter_dist" / "server" / "devices" / f"{name}.py" for name in ("amdsmi", "nvml", "xpusmi")),
    ROOT / "jupyter_dist" / "parts" / "parking" / "agent" / "checkpoint.py",
    ROOT / "jupyter_dist" / "parts" / "hangs" / "agent" / "rasreport.py",
    RANK / "collectives" / "torch_compat.py",
    RANK / "collectives" / "torch_recorders.py",
}
VENDOR = re.compile(r"(?i:cuda)|NCCL|\bnccl|_nccl|XCCL|xccl|\bxpu\b|HIP_")


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def test_one_table_names_what_differs_between_accelerators():
    """A string or attribute with a vendor's name elsewhere would leave the devices of others out."""
    for path in set(SOURCES) - KNOW_A_VENDOR:
        tree = ast.parse(path.read_text())
        prose = set(map(id, docstrings(tree)))
        found = [
            ast.unparse(node)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Attribute) and VENDOR.fullmatch(node.attr))
            or (isinstance(node, ast.Constant) and id(node) not in prose and VENDOR.search(str(node.value)))
        ]
        assert not found, f"{path.relative_to(ROOT)}: {found} belongs in protocol/accelerators.py"


def test_pages_have_the_names_of_accelerators_from_the_server():
    sources = [p for p in (ROOT / "labextension" / "src").rglob("*.ts*") if ".spec." not in p.name]
    for path in sources:
        code = re.sub(r"/\*.*?\*/|^\s*//.*?$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        assert not VENDOR.search(code), path.relative_to(ROOT)


# What the modules of a distribution are called, where that is not its own name.
MODULES = {"pyyaml": "yaml", "nvidia-ml-py": "pynvml", "ipython": "IPython", "pyzmq": "zmq"}
# The user's own: ranks need torch, and an app its framework, in the environment of the group; amdsmi comes with ROCm.
BROUGHT_BY_USERS = {"torch", "numpy", "pandas", "fastai", "amdsmi", "matplotlib", "ray", "debugpy", "pydevd", "sklearn"}


def imported_modules(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))


def test_what_is_imported_is_declared_and_nothing_else():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["mcp"], *extras["testing"]]
    names = {re.match(r"[\w-]+", line)[0] for line in declared}
    trees = [ast.parse(path.read_text()) for path in SOURCES]
    imported = {name.partition(".")[0] for tree in trees for name in imported_modules(tree)}
    imported -= sys.stdlib_module_names | {"jupyter_dist"} | BROUGHT_BY_USERS
    assert {MODULES.get(name, name) for name in names} == imported


def test_the_table_of_versions_is_made_of_what_ran():
    runs = table.load()
    assert table.TABLE.read_text() == table.render(runs)
    assert not [run for run in runs if run["result"] == "failed"]


def test_the_oldest_versions_that_are_declared_have_run():
    ran = [run for run in table.load() if run["result"] == "passed"]
    for name, least in (
        ("python", requirements.MIN_PYTHON),
        ("torch", requirements.MIN_TORCH),
        ("ipython", requirements.MIN_IPYTHON),
    ):
        versions = {tuple(map(int, run[name].split(".")[:2])) for run in ran if run[name]}
        assert least in versions, name
