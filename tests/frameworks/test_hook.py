"""The hook: what it costs, what it says, what it does when a framework is not as expected."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

from jupyter_dist.protocol.parts import find_modules
from jupyter_dist.rank.frameworks.hook import fixes_of
from jupyter_dist.rank.frameworks.torch import _differences as differences


def python(code, *path):
    """Run code in a process of its own, with these folders ahead of all others; return what it printed."""
    prelude = f"import sys\nsys.path[:0] = {[str(folder) for folder in path]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def package(folder, name, **files):
    """Write a package that acts as another version of a framework."""
    (folder / name).mkdir()
    for module, source in {"__init__": "", **files}.items():
        (folder / name / f"{module}.py").write_text(source)


SAID = """
from jupyter_dist.rank.frameworks.hook import ImportHook
context = ImportHook.in_place().context
said = []
{begin}
import {module}
{after}
print("".join(said))
"""


def test_it_imports_no_framework():
    code = "import jupyter_dist.rank.frameworks.hook\nprint(sorted({'torch', 'lightning', 'accelerate', 'fastai'} & set(sys.modules)))"
    assert python(code) == "[]\n"


def test_a_framework_that_is_not_as_expected_is_left_alone_and_still_imported(tmp_path):
    package(tmp_path, "accelerate", launchers="value = 1\n")
    code = SAID.format(
        begin="context.begin(2, 'cpu', said.append)",
        module="accelerate.launchers",
        after="assert accelerate.launchers.value == 1",
    )
    assert "skipped, the module is not as expected (AttributeError: " in python(code, tmp_path)


def test_what_is_said_before_the_rank_begins_is_kept(tmp_path):
    package(tmp_path, "accelerate", launchers="value = 1\n")
    code = SAID.format(begin="", module="accelerate.launchers", after="context.begin(2, 'cpu', said.append)")
    assert python(code, tmp_path).count("skipped, the module is not as expected") == 1


def test_a_module_that_fails_to_import_says_why_itself(tmp_path):
    package(tmp_path, "accelerate", launchers="1 / 0\n")
    code = """
    from jupyter_dist.rank.frameworks.hook import ImportHook
    ImportHook.in_place()
    try:
        import accelerate.launchers
    except ZeroDivisionError:
        print("as it is")
    """
    assert python(code, tmp_path) == "as it is\n"


def test_what_was_imported_before_is_fixed_as_well():
    code = SAID.format(begin="context.begin(2, 'cpu', said.append)", module="accelerate", after="")
    assert "run in place" in python("import accelerate\n" + code)


def test_every_fix_names_a_version_and_says_what_it_does():
    for module, fixes in fixes_of(find_modules("fixes")).items():
        for fix in fixes:
            assert fix.seen_with[0].isdigit(), module
            assert fix.apply.__doc__, module


@pytest.mark.parametrize("asked", ["nccl", "gloo", "cpu:gloo,cuda:nccl", "cuda:nccl", None])
def test_a_backend_that_is_there_for_its_devices_is_no_difference(asked):
    """Ranks on devices join with gloo for tensors on the CPU; scripts ask for nccl."""
    group = SimpleNamespace(get_backend=lambda: "cpu:gloo,cuda:nccl", get_world_size=lambda: 2, get_rank=lambda: 0)
    assert differences(group, {"backend": asked}) == []
    assert differences(group, {"backend": "mpi"}) == ["backend='cpu:gloo,cuda:nccl'"]
