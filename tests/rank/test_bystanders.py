"""Connections that are not gloo's: ending a hung collective does not affect them."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rankclient import RankClient, ZygoteClient, make_spec
from waits import until

MakeGroup = Callable[..., list[RankClient]]

OPEN = """
import os, socket, zmq

def tcp_pair():
    with socket.create_server(('127.0.0.1', 0)) as server:
        client = socket.create_connection(server.getsockname())
        return client, server.accept()[0]

python_pair = tcp_pair()
c_pair = [sock.detach() for sock in tcp_pair()]  # no Python object owns these, as in libpq or gRPC
unix_pair = [sock.detach() for sock in socket.socketpair()]
context = zmq.Context()
bound, connected = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
bound.setsockopt(zmq.LINGER, 0)
connected.setsockopt(zmq.LINGER, 0)
# Were a connection cut, ZeroMQ would make another one in silence; this tells.
cuts = connected.get_monitor_socket(zmq.EVENT_DISCONNECTED)
connected.connect(f"tcp://127.0.0.1:{bound.bind_to_random_port('tcp://127.0.0.1')}")
own_store = dist.TCPStore('127.0.0.1', 0, 1, is_master=True)

def check():
    python_pair[0].sendall(b'python')
    assert python_pair[1].recv(99) == b'python'
    for first, second in (c_pair, unix_pair):
        os.write(first, b'c')
        assert os.read(second, 99) == b'c'
    bound.send(b'zmq')
    assert connected.poll(10_000) and connected.recv() == b'zmq'
    assert not cuts.poll(200)
    own_store.set('key', 'value')
    assert own_store.get('key') == b'value'
    print('whole')

check()
"""


@pytest.fixture(scope="module")
def group(zygote: ZygoteClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RankClient]]:
    """Two ranks with connections of all kinds."""
    store = tmp_path_factory.mktemp("bystanders") / "store"
    ranks = [RankClient(zygote, make_spec(store, rank, 2)) for rank in range(2)]
    for rank in ranks:
        rank.ready()
    run_all(ranks, OPEN)
    yield ranks
    for rank in ranks:
        rank.close()


def run_all(group: list[RankClient], code: str) -> list[str]:
    started = [rank.start(code) for rank in group]
    results = [rank.result(execution_id, 60) for rank, execution_id in zip(group, started)]
    assert [result.status for result in results] == ["ok"] * len(group), results
    return [result.text() for result in results]


_numbers = itertools.count()


def rejoin(group: list[RankClient], tmp_path: Path) -> None:
    store = tmp_path / f"rejoined{next(_numbers)}"
    numbers = [rank.post_rejoin(store) for rank in group]
    answers = [rank.answer(number, 60) for rank, number in zip(group, numbers)]
    assert all(answer["ok"] for answer in answers), answers


HANGS = {
    "all_reduce": ("", "dist.all_reduce(torch.ones(3))"),
    "subgroup": ("sub = dist.new_group([0, 1])", "dist.all_reduce(torch.ones(3), group=sub)"),
    "new_group": ("", "dist.new_group([0, 1])"),
    "backward": (
        "net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))",
        "net(torch.ones(2, 2)).sum().backward()",
    ),
}


def waits_in(rank: RankClient) -> bool:
    """Whether its cell waits for the other rank: text before that is there sooner, on a busy machine much sooner."""
    seen = rank.answer(rank.post("stack"))
    return bool(seen["collective"] or seen["wait"])


@pytest.mark.parametrize("what", HANGS)
def test_an_interrupt_of_a_hung_collective_cuts_no_other_connection(
    group: list[RankClient], tmp_path: Path, what: str
) -> None:
    before, hang = HANGS[what]
    run_all(group, before)
    execution_id = group[0].start(f"print('hangs in {what}')\n{hang}")
    group[0].wait_text(f"hangs in {what}")
    until(lambda: waits_in(group[0]))
    group[0].interrupt(execution_id)
    result = group[0].result(execution_id, 60)
    assert (result.status, result.reply["process_group"]) == ("interrupted", "broken")
    assert run_all(group, "check()") == ["whole\n"] * 2
    rejoin(group, tmp_path)
    assert run_all(group, "check()\ndist.barrier()") == ["whole\n"] * 2


def free_a_hang(group: list[RankClient], tmp_path: Path, words: str, call: str) -> None:
    """Rank 0 alone makes this call; an interrupt ends it, and after that everything of others is whole."""
    execution_id = group[0].start(f"print('{words}')\n{call}")
    group[0].wait_text(words)
    group[0].interrupt(execution_id)
    assert group[0].result(execution_id, 60).status == "interrupted"
    rejoin(group, tmp_path)
    assert run_all(group, "check()\ndist.barrier()") == ["whole\n"] * 2


def test_a_process_group_that_the_user_makes_is_freed_too(group: list[RankClient], tmp_path: Path) -> None:
    run_all(group, "dist.destroy_process_group()")
    init = f"dist.init_process_group('gloo', init_method='file://{tmp_path}/own', rank=rank, world_size=2)"
    run_all(group, f"{init}\ncheck()")
    free_a_hang(group, tmp_path, "hangs in own", "dist.all_reduce(torch.ones(3))")


def test_connections_that_gloo_makes_late_are_known(group: list[RankClient], tmp_path: Path) -> None:
    run_all(group, "import os\nos.environ['TORCH_GLOO_LAZY_INIT'] = '1'\nlazy = dist.new_group([0, 1])")
    run_all(group, "dist.all_reduce(torch.ones(3), group=lazy)")
    free_a_hang(group, tmp_path, "hangs late", "dist.all_reduce(torch.ones(3), group=lazy)")


def test_a_wait_on_a_store_of_the_users_own_is_ended(group: list[RankClient], tmp_path: Path) -> None:
    run_all(group, "mine = dist.TCPStore('127.0.0.1', 0, 1, is_master=True)")
    execution_id = group[0].start("print('waits for a key')\nmine.get('never')")
    group[0].wait_text("waits for a key")
    group[0].interrupt(execution_id)
    assert group[0].result(execution_id, 60).status == "interrupted"
    assert run_all(group, "check()\ndist.barrier()") == ["whole\n"] * 2


STORES = {
    "file": "dist.FileStore('{}/of-user', 2).wait(['never'])",
    "hash": "dist.HashStore().get('never')",
    "tcp": "dist.TCPStore('127.0.0.1', 0, 1, is_master=True).wait(['never'])",
    "the group's": "dist.distributed_c10d._get_default_store().get('never')",
}
# The port is free again each time.
CONSTRUCTORS = {
    "waits for a worker": "dist.TCPStore('127.0.0.1', {port}, 2, is_master=True)",
    "waits for a worker again": "dist.TCPStore('127.0.0.1', {port}, 2, is_master=True)",
    "does not find its server": "dist.TCPStore('127.0.0.1', {other}, 2, is_master=False)",
}
TIMEOUTS = """
from datetime import timedelta
for store in (dist.HashStore(), dist.FileStore('{}/limited', 2), dist.TCPStore('127.0.0.1', 0, 1, is_master=True)):
    store = dist.PrefixStore('a', store)
    try: store.wait(['k'], timedelta(milliseconds=300))
    except RuntimeError as err: print(str(err).lower().partition(' after')[0], 'after' not in str(err) or '300ms' in str(err))
    store.set('k', 'v')
    store.wait(['k'])
    print(store.get('k'))
"""


def test_an_interrupt_ends_a_wait_for_a_key_of_any_store(group: list[RankClient], tmp_path: Path) -> None:
    for code in STORES.values():
        execution_id = group[0].start(f"kept = 1\nprint('waits for a key')\n{code.format(tmp_path)}")
        group[0].wait_text("waits for a key")
        group[0].interrupt(execution_id)
        result = group[0].result(execution_id, 60)
        assert (result.status, result.reply["process_group"]) == ("interrupted", "ok")
    assert group[0].run(TIMEOUTS.format(tmp_path)).text() == "wait timeout True\nb'v'\n" * 3
    assert run_all(group, "check()\ndist.barrier()") == ["whole\n"] * 2


def is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_an_interrupt_ends_the_constructor_of_a_store(group: list[RankClient]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as nobody:
        ports = {"port": taken.getsockname()[1], "other": nobody.getsockname()[1]}
    for code in CONSTRUCTORS.values():
        execution_id = group[0].start(f"kept = 1\nprint('constructs')\n{code.format(**ports)}")
        group[0].wait_text("constructs")
        group[0].interrupt(execution_id)
        result = group[0].result(execution_id, 60)
        assert (result.status, result.reply["process_group"]) == ("interrupted", "ok"), (
            code,
            result.reply,
            result.text(),
        )
        until(lambda: is_free(ports["port"]), lambda: code)
    server = f"store = dist.TCPStore('127.0.0.1', {ports['port']}, 1, is_master=True)\nstore.set('a', 'b')\nprint(store.get('a'), kept)"
    assert group[0].run(server).text() == "b'b' 1\n"
    late = "from datetime import timedelta\ntry: dist.TCPStore('127.0.0.1', 0, 2, is_master=True, timeout=timedelta(seconds=1))\nexcept dist.DistError as err: print(str(err) != '')"
    assert group[0].run(late).text() == "True\n"
    assert run_all(group, "check()\ndist.barrier()") == ["whole\n"] * 2


def test_a_sleep_that_takes_no_interrupt_breaks_no_process_group(group: list[RankClient]) -> None:
    """Not gloo's either: what the main thread waits for is not torch's."""
    code = (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "print('sleeps masked')\ntime.sleep(3)\nsignal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})"
    )
    execution_id = group[0].start(code)
    group[0].wait_text("sleeps masked")
    group[0].interrupt(execution_id)
    assert group[0].result(execution_id, 60).reply["process_group"] == "ok"
    assert run_all(group, "signal = __import__('signal')\ncheck()\ndist.barrier()") == ["whole\n"] * 2


def test_the_death_of_a_peer_cuts_no_other_connection(make_group: MakeGroup, tmp_path: Path) -> None:
    first, second = make_group(2)
    assert first.run(OPEN, 60).text() == "whole\n"
    execution_id = first.start("print('hangs alone')\ndist.all_reduce(torch.ones(3))")
    first.wait_text("hangs alone")
    os.kill(second.pid, signal.SIGKILL)
    second.exit()
    first.send({"t": "peer_lost", "rank": 1, "reason": "was killed"})
    assert "was killed" in first.result(execution_id, 60).error["evalue"]
    assert first.run("check()").text() == "whole\n"
