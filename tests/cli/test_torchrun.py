"""`jupyter dist run` takes torchrun's command line, and gives a script what torchrun gives it."""

import json
import os
import re
import subprocess
import sys

import pytest
from waits import PATIENCE

from jupyter_dist.cli import torchrun
from jupyter_dist.cli.commands.cells import RunCommand
from jupyter_dist.client import JupyterDistError

PRINT_ENVIRONMENT = "import json, os\nprint('\\n' + json.dumps(dict(os.environ)), flush=True)\n"
# torchrun's own: a file for errors of @record, which it shows itself; what its parent handles; NCCL's watchdog, which would
# end a rank and its variables (protocol/accelerators.py).
NOT_SET = {"TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_SIGNALS_TO_HANDLE", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
# Of this run, or of this machine.
OF_ITS_OWN = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"}


def environments(text):
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda env: int(env["RANK"]))


def test_a_script_has_the_environment_that_torchrun_gives_it(dist, tmp_path):
    (tmp_path / "env.py").write_text(PRINT_ENVIRONMENT)
    options = ("--nproc-per-node", "2", "--max-restarts=3", "--role", "trainer", "env.py")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "OMP"))}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, env=plain, timeout=3 * PATIENCE
    )
    theirs, ours = environments(done.stdout), environments(dist("run", *options).stdout)
    assert len(theirs) == len(ours) == 2
    for their, our in zip(theirs, ours, strict=True):
        set_by_torchrun = {name for name in their if plain.get(name) != their[name]} - {"LC_CTYPE"}
        assert set_by_torchrun - set(our) == NOT_SET - set(our)
        same = set_by_torchrun - NOT_SET - OF_ITS_OWN
        assert {name: our[name] for name in same} == {name: their[name] for name in same}
        assert our["ROLE_NAME"] == "trainer"
        assert our["TORCHELASTIC_USE_AGENT_STORE"] == "False"  # rank 0 serves the store of env://


def test_torchruns_command_line_is_taken_unchanged(dist, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text(
        "import os, sys\nfrom . import beside\n"
        "print(beside.word, os.environ['WORLD_SIZE'], os.environ['TORCHELASTIC_RUN_ID'], sys.argv[1:])\n"
        "print('warned', os.environ['RANK'], file=sys.stderr)\n"
    )
    (tmp_path / "package" / "beside.py").write_text("word = 'found'\n")
    done = dist(
        "run", "--standalone", "--nnodes=1", "--nproc_per_node", "2", "--rdzv-backend=c10d", "--rdzv_id", "job7",
        "--log-dir", "logs", "--tee", "1", "--redirects", "0:2", "--local-ranks-filter", "0,1", "-m", "package.train",
        "--lr", "3",
    )  # fmt: skip
    assert "found 2 job7 ['--lr', '3']\n" in done.stdout
    assert "warned 1" in done.stdout
    assert "warned 0" not in done.stdout  # redirected
    assert "--rdzv-backend has no effect: the ranks of a group meet on this machine by themselves.\n" in done.stderr
    (folder,) = (tmp_path / "logs").iterdir()
    assert f"Logs: logs/{folder.name}\n" in done.stderr
    assert folder.name.startswith("job7_")
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.log")}
    said = "found 2 job7 ['--lr', '3']\n"
    assert files == {
        "attempt_0/0/stdout.log": said,
        "attempt_0/0/stderr.log": "warned 0\n",
        "attempt_0/1/stdout.log": said,
    }


def used(options):
    torchrun.check(options)
    torchrun.RankLogs(options)
    torchrun.start_fields(options, None)


def test_what_makes_no_sense_for_a_group_is_refused_with_a_sentence():
    for options, sentence in (
        (["--nnodes", "2"], "A group has one machine."),
        (["--node_rank", "1"], "A group has one machine."),
        (["--no-python"], "There is no --no-python here. Ranks run Python"),
        (["--numa_binding", "node"], "There is no --numa-binding here."),
        (["--nproc-per-node", "many"], "--nproc-per-node cannot be 'many'. Give a number, or auto"),
        (["--nproc-per-node", "2", "-n", "2"], "Give one of them."),
        (["-g", "train", "--max-restarts", "2"], "--max-restarts is for a new group, but -g names a running one."),
        (["--tee", "7"], "--tee cannot be '7'."),
        (["--redirects", "0:1,2"], "--redirects cannot be '0:1,2'."),
        (["--local-ranks-filter", "all"], "--local-ranks-filter cannot be 'all'."),
    ):
        chosen = RunCommand().parser().parse_args([*options, "x.py"])
        with pytest.raises(JupyterDistError, match=re.escape(sentence)):
            used(chosen)


def test_a_script_that_fails_on_one_rank_ends_on_all_and_is_restarted(dist, tmp_path):
    (tmp_path / "flaky.py").write_text(
        "import os, torch.distributed as dist\n"
        "count, most = os.environ['TORCHELASTIC_RESTART_COUNT'], os.environ['TORCHELASTIC_MAX_RESTARTS']\n"
        "print('attempt', count, 'of', most)\n"
        "dist.init_process_group('gloo')\n"
        "if count == '0' and dist.get_rank() == 1: raise ValueError('flaky')\n"
        "dist.barrier()\n"
        "print('through')\n"
    )
    done = dist("run", "-n", "2", "--max-restarts", "1", "flaky.py")
    assert "ValueError: flaky" in done.stdout
    assert "The script failed: restarting all ranks (1 restarts left)." in done.stderr
    # What a rank prints later than the other is printed apart.
    second = done.stdout[done.stdout.index("attempt 1 of 1") :].splitlines()
    through = [line for line in second if not line.startswith("[rank")]
    assert through in (
        ["attempt 1 of 1", "through"],
        ["attempt 1 of 1", "through", "through"],
        2 * ["attempt 1 of 1"] + 2 * ["through"],
    )


def test_modules_of_a_script_do_not_shadow_those_of_the_next(dist, group, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"word = 'of {name}'\n")
        (tmp_path / name / "train.py").write_text("import helper, sys\nprint(helper.word, len(sys.argv))\n")
    run = ("run", "-g", group.name)
    assert dist(*run, "a/train.py").stdout == "[ranks 0-1]\nof a 1\n"
    assert dist(*run, "b/train.py", "x").stdout == "[ranks 0-1]\nof b 2\n"
    (tmp_path / "a" / "helper.py").write_text("word = 'edited'\n")
    assert dist(*run, "a/train.py").stdout == "[ranks 0-1]\nedited 1\n"
    left = group.run("import sys\n'helper' in sys.modules, [p for p in sys.path if p.endswith(('/a', '/b'))], sys.argv")
    assert left.values[0] == "(False, [], [''])"
    for name in ("a", "b"):  # in cells
        group.run(f"%run {tmp_path}/{name}/train.py")
    assert group.run("helper.word").values[1] == "'of b'"


@pytest.mark.parametrize("nproc", ["cpu", "auto"])
def test_the_number_of_ranks_may_be_that_of_the_processors(nproc):
    class Machine:
        def ask(self, *_):
            return {"devices": []}

    assert torchrun._shape(nproc, Machine()) == {"accelerator": "cpu", "num_ranks": len(os.sched_getaffinity(0))}
