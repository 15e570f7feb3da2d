"""Every command, on real ranks."""

import argparse
import json
import re
import signal
import sys
from pathlib import Path

import pytest
from records import counted
from waits import PATIENCE, read_until, running, until

from jupyter_dist.cli.commands.logs import record_text
from jupyter_dist.client.startoptions import add_start_options
from jupyter_dist.magics.distmagics import init_parser
from jupyter_dist.magics.failures import DistError
from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.states import GONE_GROUP_STATES

MAIN = "from jupyter_dist.cli.main import main; main()"


def said_by(rank, text):
    blocks = re.findall(r"\[ranks? (\S+)\]\n((?:[^\[].*\n)*)", text)
    return "".join(lines for ranks, lines in blocks if rank in RankSet.from_text(ranks))


def test_a_command_that_does_not_exist_is_named(dist):
    done = dist("frobnicate", status=2)
    assert "There is no command 'frobnicate'." in done.stderr
    assert "Did you mean 'start'?" in dist("startt", status=2).stderr
    assert "usage: jupyter dist COMMAND" in done.stdout


def test_without_a_command_they_are_named(dist):
    said = dist(status=2).stdout
    assert "usage: jupyter dist COMMAND" in said
    for word in (
        "start",
        "list",
        "status",
        "attach",
        "exec",
        "run",
        "logs",
        "stacks",
        "samples",
        "stop",
        "doctor",
        "completion",
        *(operation.command for operation in OPERATIONS if operation.command),
    ):
        assert f"  {word} " in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ranks-per-node 4,", "'4,' is not a number of ranks: write 4, or the number of each node, such as 4,8"),
        ("--ranks-per-node 4,many", "'4,many' is not a number of ranks: write 4, or the number of each node"),
        ("--devices 0,x", "'0,x' is not a list of devices: write 0,1,3, or all"),
        ("--env DEBUG", "'DEBUG' has no value: write NAME=VALUE"),
        ("--launcher-option gpus_per_node", "'gpus_per_node' has no value: write NAME=VALUE"),
    ],
)
def test_a_wrong_value_of_an_option_has_a_sentence(words, sentence, capsys):
    parser = argparse.ArgumentParser()
    add_start_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(words.split())
    assert sentence in capsys.readouterr().err
    if "ranks" in words:
        with pytest.raises(DistError, match=re.escape(sentence)):
            init_parser().parse(words)


def test_exec_prints_what_ranks_say_and_ends_with_their_outcome(dist, group):
    said = dist("exec", "print('hi')\nrank").stdout
    assert said_by(0, said) == "hi\n0\n"  # folded as far as the ranks speak at the same time
    assert said_by(1, said) == "hi\n1\n"
    failed = dist(
        "exec", "--group", "from-shell", "--ranks", "!0", "-", input="raise ValueError('only here')", status=1
    )
    assert "ValueError: only here" in failed.stdout
    assert failed.stdout.startswith("[rank 1]\n")
    view = json.loads(dist("exec", "--json", "6 * 7").stdout)
    assert view["execution"]["state"] == "ok"
    assert view["items"][0]["output"]["data"]["text/plain"] == "42"


@pytest.mark.parametrize("pause", [0, 0.001])
def test_a_long_output_is_shown_to_its_end_and_what_is_left_out_is_named(dist, group, pause):
    num_lines = 5000  # a view has 2200
    code = f"import time\nfor line in range({num_lines}):\n    print('line', line)\n    time.sleep({pause})"
    said = dist("exec", "--ranks", "1", "--per-rank", code).stdout
    assert counted(re.findall(r"^1\| (.*)\n", said, re.M), "line") == num_lines
    assert said.endswith(f"1| line {num_lines - 1}\n")


def test_list_status_and_logs(dist, group):
    assert "Group 'from-shell': 2 ranks, ready, cpu" in dist("list").stdout
    assert [found["name"] for found in json.loads(dist("list", "--json").stdout)] == ["from-shell"]
    assert "rank 1: idle, pid" in dist("status", "from-shell").stdout
    assert dist("stacks", "from-shell").stdout == "ranks 0-1: idle\n"
    assert {sample["rank"] for sample in json.loads(dist("status", "--json").stdout)["memory"]["ranks"]} == {0, 1}
    said = dist("samples", "from-shell").stdout  # `status` followed the memory
    assert "  rank 1: resident" in said
    assert {rank["rank"] for rank in json.loads(dist("samples", "--json").stdout)["ranks"]} == {0, 1}
    assert dist("samples", "--minutes", "0").stdout.startswith("No samples: ")
    group.run("print('to the log')\nrank")
    assert "--- [" in dist("logs", "--rank", "1").stdout
    assert "to the log\n1\n--- ok" in dist("logs", "--rank", "1").stdout
    assert json.loads(dist("logs", "--json").stdout.splitlines()[-1])["kind"] == "end"


def test_logs_are_followed_until_ctrl_c(group, own_runtime):
    command = [sys.executable, "-c", MAIN, "logs", "--follow", "--rank", "0"]
    with running(command) as follower:
        follower.stdout.readline()
        group.run("print('since then')")
        read_until(follower, "since then\n".__eq__)
        follower.send_signal(signal.SIGINT)
        follower.stdout.read()
        assert follower.wait(PATIENCE) == 130


def test_start_and_stop(dist, client):
    assert "Group 'second': 1 ranks ready" in dist("start", "second", "-n", "1", "--env", "COLOUR=blue").stdout
    assert client.attach("second").run("import os; os.environ['COLOUR']").values == {0: "'blue'"}
    assert "two ranks" not in dist("stop", "second").stdout
    refused = dist("stop", "second", status=1)
    assert "There is no group 'second'" in refused.stderr
    assert json.loads(dist("stop", "second", "--json", status=1).stdout)["error"]["code"] == "unknown_group"


def test_a_script_runs_as_torchrun_would_run_it(dist, client, tmp_path):
    (tmp_path / "beside.py").write_text("word = 'found'\n")
    (tmp_path / "train.py").write_text(
        "import sys, beside, torch, torch.distributed as dist\n"
        "if __name__ == '__main__':\n"
        "    dist.init_process_group('gloo')\n"
        "    total = torch.ones(1); dist.all_reduce(total)\n"
        "    print(beside.word, sys.argv[1:], int(total))\n"
        "    sys.exit(int(sys.argv[-1]))\n"
    )
    assert "found ['--lr', '3', '0'] 2\n" in dist("run", "-n", "2", "train.py", "--lr", "3", "0").stdout
    assert "SystemExit: 4" in dist("run", "-n", "1", "train.py", "4", status=1).stdout
    assert "There is no script" in dist("run", "nothing.py", status=1).stderr
    assert not [group for group in client.groups() if group.name.startswith("run-")]


def test_ranks_may_be_chosen_behind_the_script_unless_they_were_before(dist, tmp_path):
    (tmp_path / "say.py").write_text("import os, sys\nprint(os.environ['WORLD_SIZE'], sys.argv[1:])\n")
    behind = dist("run", "say.py", "--lr", "3", "--num-ranks", "1", "-n", "9", "x")
    assert behind.stdout == "[rank 0]\n1 ['--lr', '3', '-n', '9', 'x']\n"
    assert behind.stderr == "--num-ranks selects the ranks; to pass it to the script, write -- before it.\n"
    before = dist("run", "-n", "1", "say.py", "--num-ranks=7", "--devices", "all")
    assert before.stdout == "[rank 0]\n1 ['--num-ranks=7', '--devices', 'all']\n"
    assert before.stderr == ""
    owned = dist("run", "--per-rank", "say.py", "--", "--devices", "2")
    assert sorted(owned.stdout.splitlines()) == ["0| 2 ['--devices', '2']", "1| 2 ['--devices', '2']"]
    half = dist("run", "say.py", "--num-ranks", "1", "--", "--num-ranks", "5")
    assert half.stdout == "[rank 0]\n1 ['--num-ranks', '5']\n"
    refused = dist("run", "say.py", "--devices", "0,1", status=1).stderr  # of a machine without any
    assert "--devices selects the ranks" in refused
    assert "device" in refused.splitlines()[-1]


def test_output_by_rank(dist, group):
    said = dist("exec", "--per-rank", "print('a')\nprint('b' * rank)").stdout
    assert sorted(said.splitlines()) == ["0| ", "0| a", "1| a", "1| b"]


def test_ctrl_c_interrupts_the_ranks_and_keeps_them(group, own_runtime):
    command = [sys.executable, "-c", MAIN, "exec", "-r", "0", "print('on', flush=True)\nimport time\ntime.sleep(1000)"]
    with running(command) as command:
        read_until(command, "on\n".__eq__)
        command.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in command.stdout.read()
        assert command.wait(PATIENCE) == 130
    assert group.status().state == "ready"


def test_doctor_says_what_there_is(dist, group):
    findings = json.loads(dist("doctor", "--json").stdout)
    assert {finding["subject"] for finding in findings} == {
        "server", "environment", "devices", "network", "shared memory", "open files", "kept for fast starts",
        "verdicts on cells",
    }  # fmt: skip
    found = next(finding["text"] for finding in findings if finding["subject"] == "environment")
    assert re.search(r": torch \d\S+, IPython \d\S+, Python 3\S+$", found)
    wrong = dist("doctor", "--url", "http://127.0.0.1:9", status=1).stdout
    assert "WRONG  server: The Jupyter server at http://127.0.0.1:9 does not respond" in wrong


def test_no_server_is_started_to_say_that_no_group_runs(dist, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    assert dist("list").stdout == "No group is running.\n"
    assert json.loads(dist("list", "--json").stdout) == []
    assert dist("stop", "--all").stdout == "No group is running.\n"
    assert "No group is running. Start one" in dist("exec", "1", status=1).stderr
    assert json.loads(dist("status", "--json", status=1).stdout)["error"]["code"] == "unknown_group"
    assert not list(tmp_path.glob("jupyter_dist-server-*"))  # the lock of who starts one


def test_groups_outlive_the_command_where_no_server_runs(dist, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("rt")))
    assert "It ends after 1 h without a Jupyter server" in dist("start", "alone", "-n", "1").stdout
    assert "It ends after 1 h without a Jupyter server" in dist("list").stdout
    assert dist("exec", "kept = 1\nkept").stdout == "[rank 0]\n1\n"
    assert dist("exec", "kept + 1").stdout == "[rank 0]\n2\n"
    assert "has ended" in dist("stop", "--all").stdout


WAITS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print("pids", os.getpid(), os.getppid(), child.pid, flush=True)
time.sleep(1000)
"""


# Tests may run under nohup, which has its programs ignore SIGHUP.
HEEDS = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); {MAIN}"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_script_and_its_group_end_with_the_command_however_that_ends(client, own_runtime, tmp_path, signum):
    (tmp_path / "waits.py").write_text(WAITS)
    command = [sys.executable, "-c", HEEDS, "run", "-n", "1", "--accelerator", "cpu", str(tmp_path / "waits.py")]
    with running(command) as run:
        line = read_until(run, lambda line: line.startswith("pids"))
        (group,) = [group for group in client.groups() if group.name == f"run-{run.pid}"]
        assert group.model["ends_with"]["owners"] == [run.pid]
        run.send_signal(signum)
        status = {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}.get(signum, 128 + signum)
        assert run.wait(PATIENCE) == status
    until(lambda: not any(Path("/proc", pid).exists() for pid in line.split()[1:]))
    until(lambda: not living(client, group.name))


def living(client, name):
    return [found for found in client.groups() if found.name == name and found.model["state"] not in GONE_GROUP_STATES]


def test_nothing_is_left_of_a_command_that_is_ended_while_its_group_starts(client, own_runtime, tmp_path):
    (tmp_path / "waits.py").write_text(WAITS)
    command = [sys.executable, "-c", MAIN, "run", "-n", "1", "--accelerator", "cpu", str(tmp_path / "waits.py")]
    with running(command) as run:
        name = f"run-{run.pid}"
        until(lambda: living(client, name))
        run.terminate()
    until(lambda: not living(client, name))


def test_records_as_text():
    assert record_text({"kind": "note", "text": "The rank died."}) == "--- The rank died.\n"
    assert record_text({"kind": "begin", "code": "", "execution_count": 3}) == "--- [3] \n"
