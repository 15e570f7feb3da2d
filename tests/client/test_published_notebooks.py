"""Ddip's usage notebooks and nbdistributed's demo: the cells are ours, their order and their magics are the published ones.

Adapted: texts are shorter, and devices are those of the group. `-g all` and `--gpu-ids` stay as they are published, on a
machine without devices too. tests/replay.py replays the published files themselves.
"""

import psutil
import pytest
from magickernel import kernel_of
from waits import until

from jupyter_dist.client import TimedOutError

pytestmark = pytest.mark.part("ddip")

# Each cell, and what is below it: text of the kernel, then (ranks, text) of the ranks; None: any.
# A string that starts with `!` is the error that the cell fails with.
MAKEDIP = [
    ("%makedip -g all -a teaching --verbose True", "App 'teaching' is in use on all ranks."),
    ("%makedip -i", "App: teaching\nAuto execution on ranks: off"),
    ("%makedip -k", "has ended."),
    ("%makedip -g 0,1 -a teaching", "of 2 ranks."),
    ("%makedip -r -g all -a teaching", "App 'teaching' is in use again."),
    ("%%dip --see all\nimport teaching\nteaching.told", [("0-1", "['set up']")]),  # once
]
DIP = [
    ("%makedip -g all -a fastai_v1 --verbose True", "App 'fastai_v1' is in use on all ranks."),
    ("%makedip -i", "App: fastai_v1\nAuto execution on ranks: off"),
    ("%makedip -k", "has ended."),
    ("%makedip -g 0,1 -a fastai_v1", "of 2 ranks."),
    ("%makedip -r -g all -a fastai_v1", "App 'fastai_v1' is in use again."),
]
DIP = [
    ("%makedip -g all --verbose False", "of 2 ranks."),
    ("%%dip?", ""),
    (
        "%%dip --see all\nimport os\nfor i in range(3):\n    print(i, end='')\nprint()\nonly_there = rank",
        [("0-1", "012\n")],
    ),
    ("# in the kernel\nprint('kernel')\nonly_there", "!NameError: name 'only_there' is not defined"),
    ("%%dip everywhere\nimport os, random, time\n\n# everywhere", ""),
    ("%%dip everywhere --see all\n\ny = 'rank' in globals()\nprint(y)", ["False\n", ("0-1", "True\n")]),
    ("%autodip?", ""),
    ("%autodip on", "Auto execution on ranks: %%dip\n"),
    (
        "dream = 2\nwhile dream > 0:\n    print('.', end='', flush=True)\n    dream -= 1\nprint('woke')",
        [("0", "..woke\n")],
    ),
    ("%%dip --see all\nprint('I am', rank)", [("0", "I am 0\n"), ("1", "I am 1\n")]),
    ("# rank 0 alone again\nprint('I am', rank)", [("0", "I am 0\n")]),
    ('%autodip -a "--see all" on', "Auto execution on ranks: %%dip --see all\n"),
    ("print('automatic', rank)", [("0", "automatic 0\n"), ("1", "automatic 1\n")]),
    ("%%dip local\n\ns = f\"in the kernel {'rank' in globals()}\"\nprint(s)\n\n%dipush s", ["in the kernel False\n"]),
    ("%%dip everywhere\ncount = globals().get('count', 0) + 1\nprint(count)", ["1\n", ("0", "1\n")]),
    ("print(s)", [("0-1", "in the kernel False\n")]),
    ("%autodip", "Auto execution on ranks: %%dip --see all\n"),
    ("%autodip --args '--see 1' on", "Auto execution on ranks: %%dip --see 1\n"),
    ("print('automatic', rank)", [("1", "automatic 1\n")]),
    ("%autodip off", "Auto execution on ranks: off\n"),
    ("print('kernel')", ["kernel\n"]),
]
DIPUSH = [
    ("%makedip -k", None),
    ("%makedip -r -g all --verbose False", "Started group"),
    ("%makedip -i", "App: fastai (once a cell has imported it)\n"),
    ("def printer(f):\n    print('kernel', f)\n\nfoobar = {1: 'foo'}\nprinter(foobar)", ["kernel {1: 'foo'}\n"]),
    ("%%dip\n# on the ranks\ndef printer(f):\n    print('rank', f)\n\nprinter(foobar)", "!ranks 0-1: NameError"),
    ("%dipush foobar", ""),
    ("%%dip\nprinter(foobar)", [("0", "rank {1: 'foo'}\n")]),
    ("%%dip --see all\n# a flag\nthere = 10 + rank\nthere", [("0", "10"), ("1", "11")]),
    ("# in the kernel\nthere", "!NameError: name 'there' is not defined"),
    ("%dipull there\nprint(there)", ["10\n"]),
    ("%dipull -r 1 there\nprint(there)", ["11\n"]),
    (
        "%%dip everywhere --see all\nx = ['a', 'rank' in globals()]\nprint(x)",
        ["['a', False]\n", ("0-1", "['a', True]\n")],
    ),
]
DIPPER = [
    ("%makedip -n 2", "of 2 ranks."),
    ("%dipper ddp", ""),
    ("print(ddp.ddp_group, ddp.gpus_str(), ddp.meminfo())", None),
    ("ddp.push({'pushed': 5})\nddp.push({'pushed': 6}, gpus=ddp.ddp_group[1:])", ""),
    ("print(ddp.pull(['pushed', 'rank'], rank=1), ddp.pull('pushed'))", ["{'pushed': 6, 'rank': 1} 5\n"]),
    ("ddp.run_cell('print(pushed)')", [("0", "5\n")]),
    ("ddp.run_cell('print(pushed)', see=[0, 1], gpus=ddp.ddp_group)", [("0", "5\n"), ("1", "6\n")]),
    ("print(ddp.gather('rank'))", ["{0: 0, 1: 1}\n"]),
    ("print(ddp.info())", "Auto execution on ranks: off"),
    ("ddp.app_init('teaching')\nddp.set_verbose(True)\nprint(ddp.info())", "App: teaching"),
    ("ddp.app_run_cmd('nothing')", "!DistError: The app 'teaching' has no function 'nothing'."),
    ("ddp.app_exit()\nprint(ddp.info())", "App: none"),
    ("ddp.new_group([0])", "has ended.\n"),
    ("print(ddp.world_size)", ["1\n"]),
    ("%autodip on", None),
    ("%makedip -r -g 0 1", "of 2 ranks."),  # of the size that is named
    ("world_size", [("0", "2")]),  # still on the ranks
    ("%makedip -r -n 2", "2 new ranks."),
    ("%autodip off", None),
]
DEMO = [
    ("%dist_debug", "Server: http"),
    ("%dist_init --num-processes 2 --gpu-ids 1,2", "2 ranks"),
    ("%dist_shutdown", "has ended."),
    ("%dist_init --num-processes 2 --gpu-ids 1,2", "2 ranks ready"),
    ("%dist_debug", "ready, 2 ranks"),
    ("%dist_status", "rank 1: "),
    (
        "%%distributed\nimport torch\nimport torch.distributed as dist\n\nprint(f'Hello of {world_size - 1}')",
        [("0-1", "Hello of 1\n")],
    ),
    (
        "%%distributed\n# on each rank\ntensor = torch.tensor([0 + rank, 2]).to(device)\nprint(f'Rank {rank}:\\n{tensor}')",
        None,
    ),
    (
        "%%distributed\n# the sum\ndist.all_reduce(tensor, op=dist.ReduceOp.SUM)\nprint(tensor.tolist())",
        [("0-1", "[1, 4]\n")],
    ),
    ("%%rank [0]\nprint('master', rank)", [("0", "master 0\n")]),
    ("%%rank [1]\nprint('worker', rank)", [("1", "worker 1\n")]),
    ("%sync", "All 2 ranks are in sync"),
    (
        "%%distributed\nb = torch.full((3,), rank)\ndist.barrier()\ndist.broadcast(b, src=0)\nprint(b.tolist())",
        [("0-1", "[0, 0, 0]\n")],
    ),
    ("%%distributed\nif rank == 1:\n    undefined_variable\nelse:\n    print('success')", "!rank 1: NameError"),
    ("%%distributed\nprint('success')", [("0-1", "success\n")]),
    ("# more ranks\n%dist_reset", "has ended."),
    ("%dist_init --num-ranks 3", "3 ranks ready"),
    ("%%rank [0,2]\n\nprint(rank)", [("0", "0\n"), ("2", "2\n")]),
    ("%%rank[1-3]\nprint(rank)", ["There is no rank 3: group 'usage' has 3 ranks.\n", ("1", "1\n"), ("2", "2\n")]),
    ("# the end\n%dist_shutdown --force", "has ended."),
]


@pytest.fixture(scope="module")
def kernel(client, tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    (folder / "teaching.py").write_text("told = []\n\ndef initializer():\n    told.append('set up')\n")
    metadata = folder / "teaching-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: teaching\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[jupyter_dist.apps]\nteaching = teaching\n")
    with kernel_of(folder / "usage.ipynb") as kernel:
        yield kernel


@pytest.mark.parametrize(
    "cells",
    [DIPUSH, DIP, DIPPER, MAKEDIP, DEMO],
    ids=[
        "usage of dipush and dipull",
        "usage of dip and autodip",
        "dipper",
        "usage of makedip",
        "nbdistributed's demo",
    ],
)
def test_a_published_notebook_runs_to_its_end(kernel, cells):
    for source, expected in cells:
        cell = kernel.run(source)
        if isinstance(expected, str) and expected.startswith("!"):
            assert cell.status == "error", source
            assert expected[1:] in cell.error, source
            continue
        assert cell.status == "ok", (source, cell.error)
        if isinstance(expected, str):
            assert expected in cell.text, source
        elif expected is not None:
            assert [cell.text] * bool(cell.text) + (cell.said if cell.displays else []) == expected, source


def test_a_group_whose_agent_died_is_shown_and_started_again(kernel, client, monkeypatch):
    assert "of 2 ranks" in kernel.run("%makedip -n 2").text
    group = client.attach("usage")
    parents = psutil.Process(group.model["ranks"][0]["pid"]).parents()
    next(each for each in parents if "agent" in each.cmdline()).kill()
    until(lambda: group.status().state == "lost")
    assert "Group 'usage': lost, 2 ranks" in kernel.run("%dist_status").text
    monkeypatch.setattr("jupyter_dist.client.asynchronous.group.SAMPLE_SECONDS", 0.2)
    with pytest.raises(TimedOutError, match="did not report its memory"):
        group.memory()
    assert "Started group 'usage' of 2 ranks." in kernel.run("%makedip -r").text
