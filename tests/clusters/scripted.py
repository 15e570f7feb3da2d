"""Scripted batch queues: programs that behave as the documented commands of PBS, LSF and Grid Engine, on this machine.

Jobs run: a script is started on the first of two hosts (processes of this machine), and the engine's own starter starts
programs on the other. Arguments that a real command does not have are refused. What is not imitated is scheduling.

    python scripted.py ENGINE COMMAND ARGUMENTS    with SCRIPTED_QUEUE, the folder of jobs
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HOSTS = ("h1", "h2")
COMMANDS = {
    "pbs": ("qsub", "qstat", "qselect", "qdel", "pbs_tmrsh"),
    "lsf": ("bsub", "bjobs", "bkill", "bparams", "bqueues", "blaunch"),
    "sge": ("qsub", "qstat", "qdel", "qconf", "qrsh", "qalter"),
}
# What an engine sends before SIGKILL.
SIGNALS = {"pbs": [signal.SIGTERM], "lsf": [signal.SIGINT, signal.SIGTERM], "sge": [signal.SIGUSR2]}
LOOK_SECONDS = 0.05
KILL_SECONDS = 30.0


def install(engine: str, folder: Path) -> str:
    """Write the commands of an engine into a folder, and return it for PATH."""
    place = folder / "bin"
    place.mkdir(parents=True)
    (folder / "jobs").mkdir()
    for command in COMMANDS[engine]:
        path = place / command
        own = f"exec {sys.executable} -S -E {__file__} {engine} {command}"
        path.write_text(f'#!/bin/sh\nSCRIPTED_QUEUE={folder} {own} "$@"\n')
        path.chmod(0o755)
    return str(place)


# -- jobs -------------------------------------------------------------------------------------------------------


def root() -> Path:
    return Path(os.environ["SCRIPTED_QUEUE"])


def jobs() -> dict[str, dict]:
    """Return the jobs by number."""
    found = {path.parent.name: json.loads(path.read_text()) for path in root().glob("jobs/*/job.json")}
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def write(number: str, **changes: object) -> None:
    path = root() / "jobs" / number / "job.json"
    job = json.loads(path.read_text()) if path.exists() else {}
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({**job, **changes}))
    new.replace(path)


def submit(engine: str, name: str, num_nodes: int, cpus: int, limit: int | None) -> str:
    """Queue a job whose script is standard input, and start the process that runs it; return its number."""
    number = 1
    while True:
        folder = root() / "jobs" / str(number)
        try:
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
    (folder / "tasks").mkdir()
    (folder / "script").write_bytes(sys.stdin.buffer.read())  # engines run a copy
    write(str(number), name=name, state="Q", num_nodes=num_nodes, cpus=cpus, limit=limit, hosts=[], code=None)
    command = [sys.executable, "-S", "-E", __file__, engine, "run", str(number)]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    subprocess.Popen(command, cwd="/", start_new_session=True, **quiet)
    return str(number)


def run(engine: str, number: str) -> None:
    """Run a job from its place in the queue to its end."""
    folder = root() / "jobs" / number
    job = jobs()[number]
    while not _may_start(number, job):
        if (folder / "cancel").exists():
            write(number, state="F", code=None)
            return
        time.sleep(LOOK_SECONDS)
    hosts = list(HOSTS[: job["num_nodes"]])
    (folder / "hosts").write_text("".join(f"{host}\n" * job["cpus"] for host in hosts))
    (folder / "pe").write_text("".join(f"{host} {job['cpus']} all.q@{host} <NULL>\n" for host in hosts))
    process = subprocess.Popen(
        ["/bin/sh", str(folder / "script")],
        env=_environment(engine, number),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    write(number, state="R", hosts=hosts, started=time.time())
    _wait(engine, folder, process, job["limit"])
    for task in _tasks(folder):
        with suppress(ProcessLookupError):
            os.killpg(task, signal.SIGKILL)
    write(number, state="F", code=process.returncode)


def _may_start(number: str, job: dict) -> bool:
    busy = [other for other in jobs().values() if other["state"] == "R"]
    before = [key for key, other in jobs().items() if other["state"] == "Q" and int(key) < int(number)]
    return job["num_nodes"] <= len(HOSTS) and not busy and not before


def _wait(engine: str, folder: Path, process: subprocess.Popen, limit: int | None) -> None:
    deadline = time.monotonic() + limit if limit else None
    steps = [*SIGNALS[engine], signal.SIGKILL]
    next_step: float | None = None
    while process.poll() is None:
        now = time.monotonic()
        if next_step is None and ((folder / "cancel").exists() or (deadline and now > deadline)):
            next_step = now
        if next_step is not None and now >= next_step and steps:
            signum = steps.pop(0)
            for group in [process.pid, *_tasks(folder)]:
                with suppress(ProcessLookupError):
                    os.killpg(group, signum)
            next_step = now + (KILL_SECONDS if steps[:1] == [signal.SIGKILL] else LOOK_SECONDS)
        time.sleep(LOOK_SECONDS)


def _tasks(folder: Path) -> list[int]:
    return [int(path.name) for path in (folder / "tasks").iterdir()]


def _environment(engine: str, number: str) -> dict[str, str]:
    """Return the variables of a job, which has nothing of the variables of its submission.

    The engine's commands are not on its PATH; a variable or a file has their folder.
    """
    folder, place = root() / "jobs" / number, str(root() / "bin")
    path = os.pathsep.join(word for word in os.environ["PATH"].split(os.pathsep) if word != place)
    env = {"PATH": path, "HOME": os.environ["HOME"], "SCRIPTED_QUEUE": str(root())}
    if engine == "pbs":
        (root() / "pbs.conf").write_text(f"PBS_EXEC={root()}\n")
        own = {"PBS_JOBID": f"{number}.scripted", "PBS_NODEFILE": str(folder / "hosts")}
        return {**env, **own, "PBS_CONF_FILE": str(root() / "pbs.conf")}
    if engine == "lsf":
        return {**env, "LSB_JOBID": number, "LSB_DJOB_HOSTFILE": str(folder / "hosts"), "LSF_BINDIR": place}
    own = {"JOB_ID": number, "PE_HOSTFILE": str(folder / "pe"), "TMPDIR": str(folder)}
    return {**env, **own, "SGE_BINARY_PATH": place, "SGE_ROOT": "/none", "ARC": "none"}


def start_on(engine: str, host: str, command: list[str]) -> int:
    """Start a program on another host of this job, and return its exit code."""
    variable = {"pbs": "PBS_JOBID", "lsf": "LSB_JOBID", "sge": "JOB_ID"}[engine]
    number = os.environ[variable].partition(".")[0]
    folder = root() / "jobs" / number
    if (root() / f"{host}-is-down").exists():
        print(f"cannot connect to {host}", file=sys.stderr)
        return 255
    for signum in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_DFL)  # another host: what this process ignores is not ignored there
    process = subprocess.Popen(
        command, env=_environment(engine, number), cwd="/", stdin=subprocess.DEVNULL, start_new_session=True
    )
    (folder / "tasks" / str(process.pid)).touch()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)  # the engine signals the program itself
    if engine == "sge":  # a qrsh that ends has its program killed, as was seen on SGE 8.1.9

        def end(*_: object) -> None:
            os.killpg(process.pid, signal.SIGKILL)
            os._exit(0)

        signal.signal(signal.SIGTERM, end)
    code = process.wait()
    return code if code >= 0 else 128 - code


def fail(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def cancel(number: str) -> bool:
    if jobs().get(number, {}).get("state") not in ("Q", "R"):
        return False
    (root() / "jobs" / number / "cancel").touch()
    return True


def seconds(text: str) -> int:
    parts = [int(part) for part in text.split(":")]
    return sum(part * 60**place for place, part in enumerate(reversed(parts)))


def parse(arguments: list[str], valued: str, flags: str = "", rest: str | None = "*") -> argparse.Namespace:
    """Return the arguments; `valued` and `flags` are the only ones that are known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in valued.split():
        parser.add_argument(f"-{name}", action="append", default=[], dest=name)
    for name in flags.split():
        parser.add_argument(f"-{name}", action="store_true", dest=name)
    if rest:
        parser.add_argument("rest", nargs=rest)
    return parser.parse_args(arguments)


# -- PBS --------------------------------------------------------------------------------------------------------


def pbs(command: str, arguments: list[str]) -> int:
    if command == "pbs_tmrsh":
        return start_on("pbs", arguments[0], arguments[1:])
    if command == "qsub":
        found = parse(arguments, "N o e r S l q A P W", rest=None)
        if "nosuch" in found.q:
            return fail("qsub: Unknown queue", 170)
        limits = dict(each.split("=", 1) for each in found.l)
        assert limits["place"] == "scatter", limits
        amounts = []  # of each node
        for nodes, chunk in (part.split(":", 1) for part in limits["select"].split("+")):
            amounts += [dict(each.split("=") for each in chunk.split(":"))] * int(nodes)
        limit = seconds(limits["walltime"]) if "walltime" in limits else None
        number = submit("pbs", found.N[0], len(amounts), 1, limit)
        (root() / "jobs" / number / "amounts.json").write_text(json.dumps(amounts))
        print(f"{number}.scripted")
        return 0
    if command == "qselect":
        found = parse(arguments, "u N")
        print("\n".join(f"{number}.scripted" for number, job in jobs().items()
                        if job["name"] == found.N[0] and job["state"] != "F"))  # fmt: skip
        return 0
    if command == "qdel":
        return 0 if cancel(arguments[0].partition(".")[0]) else fail("qdel: Job has finished", 35)
    return _qstat_pbs(parse(arguments, "F", "x f Q"))


def _qstat_pbs(found: argparse.Namespace) -> int:
    assert found.F == ["json"]
    if found.Q:
        print(json.dumps({"Queue": {"workq": {"enabled": "True"}, "old": {"enabled": "False", "kill_delay": 20}}}))
        return 0
    known, code = jobs(), 0
    shown = {}
    for job_id in found.rest:
        job = known.get(job_id.partition(".")[0])
        if job is None:
            code = fail(f"qstat: Unknown Job Id {job_id}", 153)
        else:
            shown[job_id] = _pbs_fields(job)
    print(json.dumps({"timestamp": 1, "Jobs": shown}))
    return code


def _pbs_fields(job: dict) -> dict:
    fields = {"Job_Name": job["name"], "job_state": job["state"], "Resource_List": {"select": "..."}}
    if job["limit"]:
        fields["Resource_List"]["walltime"] = (
            f"{job['limit'] // 3600:02}:{job['limit'] // 60 % 60:02}:{job['limit'] % 60:02}"
        )
    if job["state"] == "Q":
        is_too_large = job["num_nodes"] > len(HOSTS)
        fields["comment"] = (
            f"{'Can Never Run' if is_too_large else 'Not Running'}: Insufficient amount of resource: ncpus"
        )
    if job["hosts"]:
        fields["exec_host"] = "+".join(f"{host}/0*{job['cpus']}" for host in job["hosts"])
        fields["stime"] = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(job["started"]))
    if job["state"] == "F" and job["code"] is not None:
        fields["Exit_status"] = job["code"] if job["code"] >= 0 else 256 - job["code"]
    return fields


# -- LSF --------------------------------------------------------------------------------------------------------


def lsf(command: str, arguments: list[str]) -> int:
    if command == "blaunch":
        return start_on("lsf", arguments[0], arguments[1:])
    if command == "bsub":
        found = parse(arguments, "J o e n R gpu W q P G", "rn", rest=None)
        if "nosuch" in found.q:
            return fail("nosuch: No such queue. Job not submitted.", 255)
        tiles = next(int(match[1]) for word in found.R if (match := re.fullmatch(r"span\[ptile=(\d+)\]", word)))
        limit = int(found.W[0]) * 60 if found.W else None
        number = submit("lsf", found.J[0], int(found.n[0]) // tiles, tiles, limit)
        print(f"Job <{number}> is submitted to queue <normal>.")
        return 0
    if command == "bqueues":
        parse(arguments, "o", "noheader")
        print("normal|Open:Active\nold|Closed:Active")
        return 0
    if command == "bparams":  # a part of what LSF 10 prints
        assert arguments == ["-a"]
        print("    DEFAULT_QUEUE = normal\n    JOB_TERMINATE_INTERVAL = 15\n    MBD_SLEEP_TIME = 20")
        return 0
    if command == "bkill":
        if cancel(arguments[0]):
            print(f"Job <{arguments[0]}> is being terminated")
            return 0
        return fail(f"Job <{arguments[0]}>: Job has already finished", 255)
    found = parse(arguments, "o", "a noheader")
    assert found.o == ["jobid stat exec_host time_left exit_code job_name pend_reason delimiter='|'"], found.o
    rows = [_lsf_row(number, job) for number, job in jobs().items()]
    print("\n".join(rows)) if rows else print("No job found", file=sys.stderr)
    return 0 if rows else 255


def _lsf_row(number: str, job: dict) -> str:
    ended = "DONE" if job["code"] == 0 else "EXIT"
    state = {"Q": "PEND", "R": "RUN", "F": ended}[job["state"]]
    hosts = ":".join(f"{job['cpus']}*{host}" for host in job["hosts"]) or "-"
    left = int(job["started"] + job["limit"] - time.time()) // 60 if job["limit"] and job["state"] == "R" else None
    reason = "Job requirements for reserving resource (slots) not satisfied;" if state == "PEND" else "-"
    code = str(job["code"] if job["code"] >= 0 else 128 - job["code"]) if job["code"] else "-"
    left_text = "-" if left is None else f"{left // 60}:{left % 60:02} L"
    return "|".join((number, state, hosts, left_text, code, job["name"], reason))


# -- Grid Engine ------------------------------------------------------------------------------------------------


def sge(command: str, arguments: list[str]) -> int:
    if command == "qrsh":
        assert arguments[:2] == ["-inherit", "-nostdin"]
        return start_on("sge", arguments[2], arguments[3:])
    if command == "qsub":
        words = list(arguments)
        at = words.index("-pe") if "-pe" in words else None
        slots = int(words.pop(at + 2)) if at is not None else 1  # -pe has two values
        found = parse(words, "N j o r S pe l q P R", "terse notify", rest=None)
        if "nosuch" in found.q:
            return fail('Unable to run job: Job was rejected because job requests unknown queue "nosuch".\nExiting.', 1)
        limit = next((seconds(each[5:]) for each in found.l if each.startswith("h_rt=")), None)
        per_host = int(found.pe[0].removeprefix("per")) if found.pe else 1
        number = submit("sge", found.N[0], slots // per_host, per_host, limit)
        print(number)
        return 0
    if command == "qconf" and arguments[0] == "-sq":
        assert arguments[1:] == ["all.q"]
        print("qname                 all.q\nnotify                00:01:00,[h2=00:00:45]\nprolog                NONE")
        return 0
    if command == "qconf":
        print({"-sql": "all.q", "-spl": "per1\nper2"}[arguments[0]])
        return 0
    if command == "qalter":  # as SGE 8.1.9 prints it
        assert arguments[:2] == ["-w", "v"]
        if jobs()[arguments[2]]["num_nodes"] <= len(HOSTS):
            print("verification: found suitable queue(s)")
            return 0
        print(
            f'Job {arguments[2]} cannot run in PE "per1" because it only offers 2 slots\nverification: no suitable queues'
        )
        return 1
    if command == "qdel":
        return 0 if cancel(arguments[0]) else fail(f'denied: job "{arguments[0]}" does not exist', 1)
    parse(arguments, "u g", "xml r")
    running = "".join(_sge_entry(number, job, host) for number, job in jobs().items() if job["state"] == "R"
                      for host in job["hosts"])  # fmt: skip
    pending = "".join(_sge_entry(number, job, None) for number, job in jobs().items() if job["state"] == "Q")
    print(
        f"<?xml version='1.0'?>\n<job_info><queue_info>{running}</queue_info><job_info>{pending}</job_info></job_info>"
    )
    return 0


def _sge_entry(number: str, job: dict, host: str | None) -> str:
    where = ""
    if host is not None:
        began = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(job["started"]))
        role = "MASTER" if host == job["hosts"][0] else "SLAVE"
        where = f"<JAT_start_time>{began}</JAT_start_time><queue_name>all.q@{host}</queue_name><master>{role}</master>"
    state = "r" if host else "qw"
    return (
        f"<job_list state='x'><JB_job_number>{number}</JB_job_number><JB_name>{job['name'][:10]}</JB_name>"
        f"<state>{state}</state>{where}<full_job_name>{job['name']}</full_job_name></job_list>"
    )


def main(engine: str, command: str, *arguments: str) -> int:
    if command == "run":
        run(engine, *arguments)
        return 0
    if (root() / "is-silent").exists():
        return fail(f"{command}: cannot connect to the server: Connection refused", 111)
    code = {"pbs": pbs, "lsf": lsf, "sge": sge}[engine](command, list(arguments))
    while command in ("qsub", "bsub") and (root() / "is-slow").exists():  # it has accepted the job, and does not answer
        time.sleep(LOOK_SECONDS)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
