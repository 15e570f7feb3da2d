"""A group of two nodes with two ranks each on a real Slurm, as its user sees it: REST, the client and the command line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from faults.server import TOKEN, JupyterServer
from waits import PATIENCE, until

from jupyter_dist.client import Client, JupyterDistError

SHAPE = {
    "launcher": "slurm",
    "num_nodes": 2,
    "ranks_per_node": 2,
    "python": sys.executable,
    "save_before_end_seconds": 120,
}
LIMIT_MINUTES = 60  # of the jobs


class Place:
    """The servers, one after the other, and the group `wide` on the nodes of Slurm."""

    def __init__(self, home, cluster):
        self.home, self.cluster = home, cluster
        (home / "config").mkdir()
        config = f"c.SlurmLauncher.shared_dir = {str(home / 'shared')!r}\nc.SlurmLauncher.poll_seconds = 0.2\n"
        config += 'c.SlurmLauncher.limits = {"ranks_per_node": 16}\n'
        (home / "config" / "jupyter_server_config.py").write_text(config)
        self.server = None
        self.begin()

    def begin(self):
        variables = {name: self.cluster.env[name] for name in ("PATH", "SLURM_CONF")}
        self.server = JupyterServer(self.home, env=variables)

    def start(self, name="wide", **fields):
        return self.server.ask("POST", "groups", {"name": name, "cwd": str(self.home), **SHAPE, **fields})

    def group(self, name="wide"):
        return self.server.ask("GET", f"groups/{name}")

    def ready(self, name="wide"):
        group = self.server.ask("GET", f"groups/{name}?wait={PATIENCE}&not_state=starting")
        assert group["state"] == "ready", (group, self.server.log())
        return group

    def said(self, code, name="wide"):
        view = self.server.run(name, code)
        return [(item["ranks"], item["output"].get("text")) for item in view["items"]], view["execution"]["state"]


@pytest.fixture(scope="module")
def place(cluster, tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("s"), cluster)
    yield place
    for group in place.server.ask("GET", "groups")["groups"]:
        place.server.ask("DELETE", f"groups/{group['id']}")
    place.server.end()
    cluster.cancel_all()


@pytest.fixture
def wide(place):
    """The group, which is started again if a test has ended it."""
    names = {group["name"]: group["state"] for group in place.server.ask("GET", "groups")["groups"]}
    if names.get("wide") != "ready":
        place.start()
    return place.ready()


def test_nodes_are_reached_through_srun_and_run_what_an_administrator_sets(place):
    """Before there is a group `wide`: its job has a node for itself."""
    options = {"tunnel": "srun", "job_name": "own", "srun_arguments": "--cpu-bind=none", "omp_threads": "3"}
    options |= {"prologue": "export MARK=seen", "environment_passed": "none", "exclusive": True}
    group = place.start("own", num_nodes=1, ranks_per_node=1, launcher_options=options)
    try:
        what_was_set_is_there(place, group)
    finally:
        place.server.ask("DELETE", "groups/own")


def what_was_set_is_there(place, group):
    place.ready("own")
    (line,) = place.cluster.ask("squeue", "-h", "--name", f"own-{group['id']}", "-o", "%h").stdout.split()
    assert line == "NO"  # it shares its nodes with no other job
    assert json.loads((place.home / "shared" / group["id"] / "join.json").read_text())["is_tunnelled"]
    code = "import os; print(*map(os.environ.get, ('MARK', 'OMP_NUM_THREADS', 'JUPYTER_RUNTIME_DIR')), torch.get_num_threads())"
    assert place.said(code, "own") == ([("0", "seen 3 None 3\n")], "ok")


ALL_REDUCE = "x = torch.ones(1) * (rank + 1)\ndist.all_reduce(x)\nprint(x.item())\nprint(os.environ['GROUP_RANK'])"


def test_a_group_runs_on_the_nodes_of_slurm_and_a_restart_keeps_the_job(place, wide):
    allocation = wide["allocation"]
    assert (allocation["launcher"], allocation["state"], allocation["hosts"]) == ("slurm", "allocated", ["n1", "n2"])
    assert allocation["text"].startswith(f"Job {allocation['job_id']} runs on n1, n2, until ")
    job = place.cluster.ask("scontrol", "show", "job", allocation["job_id"]).stdout
    assert "CPUs/Task=2" in job, job  # one for each rank of a node
    said = [("0-3", "10.0\n"), ("0-1", "0\n"), ("2-3", "1\n")]
    assert place.said(f"import os\n{ALL_REDUCE}") == (said, "ok")
    place.server.ask("POST", "groups/wide/restart")
    place.server.ask("GET", f"groups/wide?wait={PATIENCE}&not_state=restarting")
    assert place.said(f"import os\n{ALL_REDUCE}") == (said, "ok")
    assert place.group()["allocation"]["job_id"] == allocation["job_id"]


def test_a_killed_server_is_followed_by_one_that_knows_the_job(place, wide):
    code = "import time\nfor i in range(25): print('line', i); time.sleep(0.1)"
    execution = place.server.submit("wide", code)
    until(lambda: place.server.view("wide", execution, wait=0)["items"])
    place.server.end(signal.SIGKILL)
    place.begin()
    view = place.server.view("wide", execution)
    text = "".join(item["output"]["text"] for item in view["items"] if item["ranks"] == "0-3")
    assert text == "".join(f"line {i}\n" for i in range(25)), json.dumps(view)[:2000]
    until(lambda: place.group()["allocation"]["state"] == "allocated", place.group)
    assert place.group()["allocation"]["job_id"] == wide["allocation"]["job_id"]


def test_the_end_of_the_time_limit_is_announced(place, wide):
    job = wide["allocation"]["job_id"]
    place.cluster.ask("scontrol", "update", f"JobId={job}", "TimeLimit=4")
    warning = until(lambda: place.group()["allocation"]["warning"], place.group)
    assert "Save what you need." in warning
    page, execution = place.server.channel(), place.server.submit("wide", "import time; time.sleep(1000)")
    page.send({"type": "subscribe", "topic": "execution", "group": "wide", "execution": execution, "since": 0})
    until(lambda: page.next_of("execution")["execution"].get("notices") == [warning])  # magics print it
    page.close()
    place.server.ask("DELETE", f"groups/wide/executions/{execution}")
    place.cluster.ask("scontrol", "update", f"JobId={job}", "TimeLimit=60")
    until(lambda: place.group()["allocation"]["warning"] is None, place.group)


def test_a_group_is_saved_before_the_time_limit(place, wide):
    """The group is saved two minutes before; its job is given less than that, and more again when it is saved."""
    job, ends_at = wide["allocation"]["job_id"], wide["allocation"]["ends_at"]
    until(lambda: place.group()["self_saving"]["ends_at"] == ends_at, place.group)
    place.said("x = rank")
    running = place.server.submit("wide", "x += 1\nimport time; time.sleep(1000)")
    until(lambda: place.server.view("wide", running, wait=0)["execution"]["state"] == "running")
    has_run = 60 * LIMIT_MINUTES - (ends_at - time.time())
    place.cluster.ask("scontrol", "update", f"JobId={job}", f"TimeLimit={int(has_run // 60) + 2}")
    note = until(lambda: "was saved as" in (place.group()["note"] or "") and place.group()["note"], place.group)
    place.cluster.ask("scontrol", "update", f"JobId={job}", f"TimeLimit={LIMIT_MINUTES}")
    view = place.server.view("wide", running)
    assert view["execution"]["state"] == "interrupted"
    assert "Interrupted: the allocation ends at " in json.dumps(view)
    saves = place.server.ask("GET", "saves")["saves"]  # several, where the job got its time back late
    (saved,) = (one for one in saves if one["name"] == note.split("'")[1])
    assert (saved["automatic"], saved["world_size"]) == (True, 4)
    place.said("x = None")
    place.server.ask("POST", "groups/wide/restore", {"name": saved["name"]})
    assert place.said("print(x - rank)")[0] == [("0-3", "1\n")]


def test_scancel_is_named_and_the_group_is_saved_and_started_again_with_its_options(place, wide):
    """Slurm sends SIGTERM to all processes of the job: ranks and node agents keep running until the group is saved."""
    running = place.server.submit("wide", "x = [rank, 'kept']\nprint('set')\nimport time; time.sleep(1000)")
    until(lambda: place.server.view("wide", running, wait=0)["items"])
    place.cluster.ask("scancel", wide["allocation"]["job_id"])
    until(lambda: place.group()["allocation"]["state"] == "ended", place.group)
    assert place.group()["allocation"]["text"].startswith("The job was cancelled: with scancel")
    until(lambda: place.group()["state"] == "dead", place.group)
    place.server.ask("POST", "groups/wide/start_again")
    again = place.ready()
    assert again["id"] != wide["id"]
    assert (again["world_size"], again["cwd"], len(again["nodes"])) == (4, str(place.home), 2)
    assert again["last_save"], place.server.log()
    place.server.ask("POST", "groups/wide/restore", {"name": again["last_save"]["name"]})
    assert place.said("print(x == [rank, 'kept'])")[0] == [("0-3", "True\n")]


def test_a_preempted_group_is_started_again_when_the_other_job_is_over(place):
    if "wide" in [group["name"] for group in place.server.ask("GET", "groups")["groups"]]:
        place.server.ask("DELETE", "groups/wide")
    place.start("short", save_before_end_seconds=0, launcher_options={"cpus_per_node": 8})
    place.ready("short")
    urgent = ("--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
    other = place.cluster.ask("sbatch", "--parsable", *urgent).stdout.strip()
    until(lambda: place.group("short")["allocation"]["state"] == "ended", lambda: place.group("short"))
    assert place.group("short")["allocation"]["text"].startswith("The job was preempted: ")
    until(lambda: place.group("short")["state"] == "dead", lambda: place.group("short"))
    place.server.ask("POST", "groups/short/start_again")
    until(lambda: place.group("short")["allocation"]["state"] == "queued", lambda: place.group("short"))
    place.cluster.ask("scancel", other)
    again = place.ready("short")
    job = place.cluster.ask("scontrol", "show", "job", again["allocation"]["job_id"]).stdout
    assert "CPUs/Task=8" in job, job  # the same options
    assert place.said(ALL_REDUCE.replace("print(os", "print(1 or os"), "short") == ([("0-3", "10.0\n1\n")], "ok")
    place.server.ask("DELETE", "groups/short")


def test_a_requeued_group_is_restarted_when_its_nodes_have_joined_again(place):
    place.start("often", save_before_end_seconds=0, launcher_options={"requeue": True})
    group = place.ready("often")
    job = group["allocation"]["job_id"]
    place.cluster.ask("scontrol", "requeue", job)
    until(lambda: "queued the job again" in place.group("often")["allocation"]["text"], lambda: place.group("often"))
    until(lambda: place.group("often")["state"] == "dead", lambda: place.group("often"))
    error = place.server.refused("POST", "groups/often/restart")[1]
    assert error["message"].endswith(" is gone.")
    assert error["hint"].startswith("The launcher 'slurm' started it. If it does not start it again,")

    def has_joined():
        place.cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")  # else two minutes later
        return {node["state"] for node in place.group("often")["nodes"]} == {"joined"}

    until(has_joined, lambda: place.group("often"))
    place.server.ask("POST", "groups/often/restart")
    until(lambda: place.group("often")["state"] == "ready", lambda: place.group("often"))
    assert place.said(f"import os\n{ALL_REDUCE}", "often")[0] == [("0-3", "10.0\n"), ("0-1", "0\n"), ("2-3", "1\n")]
    assert place.group("often")["allocation"]["job_id"] == job
    place.server.ask("DELETE", "groups/often")


def test_a_shutdown_releases_the_nodes_and_leaves_nothing(place, wide):
    place.server.ask("DELETE", "groups/wide")
    assert place.cluster.jobs() == {}
    assert list((place.home / "shared").iterdir()) == []


def lose(place, name, **shape):
    """Start a group and kill its agent; return the group, and its job, which runs or waits."""
    before = set(place.cluster.jobs())
    group = place.start(name, save_before_end_seconds=0, **shape)  # its nodes end at once
    if not shape:
        place.ready(name)
    (job,) = until(lambda: set(place.cluster.jobs()) - before)
    (found,) = place.home.rglob(f"{group['id']}/group.json")
    os.kill(json.loads(found.read_text())["agent_pid"], signal.SIGKILL)
    until(lambda: place.group(name)["state"] == "lost", lambda: place.group(name))
    return group, job


def left_of(place, group):
    return list(place.home.rglob(group["id"]))


@pytest.mark.parametrize("shape", [{}, {"num_nodes": 3}], ids=["runs", "waits"])
def test_the_job_of_a_lost_group_is_cancelled_when_another_takes_its_name(place, shape):
    lost, job = lose(place, "again", **shape)
    assert (place.home / "shared" / lost["id"]) in left_of(place, lost)  # with the secret of its join file
    assert place.start("again", num_nodes=3)["id"] != lost["id"]
    until(lambda: job not in place.cluster.jobs(), place.cluster.jobs)
    until(lambda: not left_of(place, lost), lambda: left_of(place, lost))
    until(place.cluster.jobs)  # the new group's
    place.server.ask("DELETE", "groups/again")
    until(lambda: not place.cluster.jobs(), place.cluster.jobs)


def test_a_server_that_stops_before_slurm_has_cancelled_a_lost_groups_job_leaves_it_to_the_next(place):
    lost, job = lose(place, "again")
    place.cluster.kill("slurmctld")
    try:
        here = {"name": "again", "cwd": str(place.home), "num_ranks": 1, "python": sys.executable}
        place.server.ask("POST", "groups", here)
        assert lost["id"] not in [group["id"] for group in place.server.ask("GET", "groups")["groups"]]
        place.server.end()
        place.begin()
    finally:
        place.cluster.start_controller()
    assert place.group(lost["id"])["state"] == "lost"
    assert place.group("again")["world_size"] == 1
    for group in (lost["id"], "again"):
        place.server.ask("DELETE", f"groups/{group}")
    until(lambda: job not in place.cluster.jobs(), place.cluster.jobs)
    assert left_of(place, lost) == []
    # After its controller has started, Slurm takes a minute.
    until(lambda: not place.cluster.jobs(), place.cluster.jobs)


def test_while_a_job_waits_the_group_says_why_and_can_be_shut_down(place):
    until(lambda: not place.cluster.jobs(), place.cluster.jobs)
    place.start("waits", num_nodes=3)
    until(lambda: "(PartitionNodeLimit)" in place.group("waits")["allocation"]["text"], lambda: place.group("waits"))
    assert place.group("waits")["state"] == "starting"
    with Client.connect(place.server.info["url"], TOKEN) as client:
        sentence = r"Group 'waits' cannot start: .*asks for less\. \(PartitionNodeLimit\)"
        with pytest.raises(JupyterDistError, match=sentence):
            client.attach("waits").ready()
    place.server.ask("DELETE", "groups/waits")
    assert place.cluster.jobs() == {}


def test_nodes_that_cannot_start_fail_the_group_with_the_reason(place):
    place.cluster.ask("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")  # the job cannot start yet
    try:
        group = place.start("fails")
        until(lambda: place.group("fails")["allocation"]["job_id"] is None and place.cluster.jobs())
        (shared,) = (place.home / "shared").iterdir()
        assert shared.name == group["id"]
        (shared / "join.json").write_text("{}")
    finally:
        place.cluster.ask("scontrol", "update", "NodeName=n2", "State=RESUME")
    until(lambda: place.group("fails")["state"] == "dead", lambda: place.group("fails"))
    error = place.group("fails")["error"]
    assert error["code"] == "start_failed"
    assert "The node agent on n" in error["message"]
    assert "This is not a join file." in error["message"]
    assert {rank["state"] for rank in place.group("fails")["ranks"]} == {"dead"}
    place.server.ask("DELETE", "groups/fails")
    until(lambda: not place.cluster.jobs(), place.cluster.jobs)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"launcher_options": {"partition": "a b"}}, "'partition' is 'a b'; a partition looks like gpu or gpu,long."),
        ({"ranks_per_node": 17}, "17 ranks on a node were requested; this server allows at most 16."),
        ({"launcher_options": {"partition": "none"}}, "Slurm refuses the job: invalid partition specified: none."),
        ({"launcher": "local", "launcher_options": {"partition": "x"}}, "The launcher 'local' has no options."),
        ({"launcher": "slurmm"}, "There is no launcher 'slurmm'."),
    ],
)
def test_each_mistake_has_its_sentence_and_nothing_is_left(place, fields, sentence):
    body = {"name": "wrong", "cwd": str(place.home), **SHAPE, **fields}
    _, error = place.server.refused("POST", "groups", body)
    assert error["message"].startswith(sentence)
    assert error["hint"]
    assert "wrong" not in [group["name"] for group in place.server.ask("GET", "groups")["groups"]]
    assert place.cluster.jobs() == {} or "wide" in [g["name"] for g in place.server.ask("GET", "groups")["groups"]]


def test_the_launchers_are_listed_with_what_is_free(place):
    launchers = {found["name"]: found for found in place.server.ask("GET", "launchers")["launchers"]}
    assert list(launchers) == ["local", "external", "processes", "kubernetes", "lsf", "pbs", "ray", "sge", "slurm"]
    assert "main: " in launchers["slurm"]["text"]
    (partition,) = (option for option in launchers["slurm"]["options"] if option["name"] == "partition")
    assert partition["choices"] == ["main", "urgent"]


def command(place, *words):
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(place.home / "runtime"), "JUPYTER_TOKEN": TOKEN}
    line = [sys.executable, "-c", "from jupyter_dist.cli.main import main; main()", *words]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)


def test_the_command_line_starts_a_group_on_slurm_and_shows_its_job(place):
    listed = command(place, "launchers", "slurm").stdout
    assert "partition: Where to queue; several, separated by commas." in listed
    assert "Known: main, urgent." in listed
    shape = ["--launcher", "slurm", "--num-nodes", "2", "--ranks-per-node", "1"]
    started = command(place, "start", "typed", *shape, "--launcher-option", "time_limit=30", "--env", "A=1")
    assert "Group 'typed': 2 ranks ready" in started.stdout, started.stderr
    assert "Run this on each" not in started.stderr
    assert " runs on n1, n2, until " in command(place, "status", "typed").stdout
    wrong = command(place, "start", "wrong", *shape, "--launcher-option", "time_limit=soon")
    assert "'time_limit' is 'soon'; a time limit looks like 90 (minutes)" in wrong.stderr
    command(place, "stop", "typed")
    assert place.cluster.jobs() == {} or "wide" in [g["name"] for g in place.server.ask("GET", "groups")["groups"]]


def test_a_node_whose_prologue_does_not_end_is_named_with_its_log(tmp_path):
    """A prologue, or an image that is fetched, has no time limit, so the group waits and shows for what."""
    go = tmp_path / "go"
    server = JupyterServer(tmp_path, start_timeout_seconds=15.0)
    try:
        prologue = f'echo loading modules\n[ "$JUPYTER_DIST_NODE_RANK" = 0 ] || until [ -e {go} ]; do sleep 0.1; done'
        shape = {
            "launcher": "processes",
            "num_nodes": 2,
            "ranks_per_node": 1,
            "launcher_options": {"prologue": prologue},
        }
        server.ask("POST", "groups", {"name": "late", "cwd": str(tmp_path), **shape})

        def text():
            return server.ask("GET", "groups/late")["allocation"]["text"]

        late = " Node 1 did not join within 15 s. Its log ends with: loading modules"
        until(lambda: text().endswith(late), text)
        assert server.ask("GET", "groups/late")["state"] == "starting"
        go.touch()
        until(lambda: server.ask("GET", "groups/late")["state"] == "ready", text)
        until(lambda: text() == "Its node agents run on localhost, localhost.", text)
        server.ask("DELETE", "groups/late")
    finally:
        server.end()
