"""Cells that damage the process: the side thread still answers, the next cell works or says why not."""

from __future__ import annotations

import pytest
from rankclient import RankClient


@pytest.mark.parametrize(
    "damage",
    [
        "import os; os.environ.clear()",
        "import sys; sys.modules.clear()",
        "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))",
        "import resource, os\nfds = []\ntry:\n    while True: fds.append(os.open('/dev/null', 0))\nexcept OSError: pass",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
        "globals().clear()",
        "%reset -f",
        "import gc; gc.disable(); gc.freeze()",
        "import sys; sys.setrecursionlimit(60)",
        "import asyncio; asyncio.get_running_loop().stop()",
        "import asyncio; asyncio.set_event_loop(None)",
        "import asyncio; await asyncio.sleep(0); asyncio.get_running_loop().stop()",
        "import sys; sys.settrace(lambda *a: None)",
        "import threading\nthreading.settrace(lambda *a: None)",
        "import sys; sys.displayhook = sys.excepthook = None",
        "get_ipython().events.callbacks.clear()",
        "import linecache; linecache.clearcache()",
    ],
)
def test_control_answers_after(rank: RankClient, damage: str) -> None:
    rank.run(damage)
    assert rank.ask("ping")["ok"]
    assert rank.ask("sample")["resident_bytes"] > 0
    assert rank.run("1 + 1").reply["status"] in ("ok", "error")
    assert rank.ask("ping")["ok"]


def test_fork_that_falls_through(rank: RankClient) -> None:
    code = "import os\npid = os.fork()\nprint('parent' if pid else 'child')\nif pid: _ = os.waitpid(pid, 0)"
    result = rank.run(code)
    assert sorted(result.text().split()) == ["child", "parent"]
    assert (
        rank.run("print(os.listdir(f'/proc/{pid}') if os.path.exists(f'/proc/{pid}') else 'gone')").text() == "gone\n"
    )
    assert [header["t"] for header, _ in rank.frames].count("reply") == 2


def test_fork_that_falls_through_with_an_error(rank: RankClient) -> None:
    result = rank.run(
        "import os\npid = os.fork()\nif not pid: 1/0\n_, status = os.waitpid(pid, 0)\nprint(os.waitstatus_to_exitcode(status))"
    )
    assert (result.status, result.text()) == ("ok", "1\n")
    assert "ZeroDivisionError" in result.text("stderr")


@pytest.mark.parametrize("method", ["fork"])
def test_pool_with_functions_of_the_cell(rank: RankClient, method: str) -> None:
    code = f"""
import multiprocessing
def square(x):
    print('in', x)
    return x * x
with multiprocessing.get_context('{method}').Pool(2) as pool:
    print(pool.map(square, [1, 2, 3]))
"""
    result = rank.run(code)
    assert result.status == "ok", result
    assert "[1, 4, 9]" in result.text()
    assert sorted(line for line in result.text().splitlines() if line.startswith("in")) == ["in 1", "in 2", "in 3"]


def test_data_loader_workers(rank: RankClient) -> None:
    code = """
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.tensor(index)
loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2)
for _ in range(2):
    print([batch.tolist() for batch in loader])
"""
    assert rank.run(code).text() == "[[0, 1, 2, 3], [4, 5, 6, 7]]\n" * 2


def test_interrupt_while_workers_load(rank: RankClient) -> None:
    code = """
import time
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 800
    def __getitem__(self, index): time.sleep(0.02); return torch.tensor(index)
print('go')
for _ in torch.utils.data.DataLoader(Slow(), num_workers=2): pass
"""
    execution_id = rank.start(code)
    rank.wait_text("go")
    rank.interrupt(execution_id)
    assert rank.result(execution_id).status == "interrupted"
    assert rank.run("print(1)").text() == "1\n"


def test_openmp_and_autograd_after_the_fork(rank: RankClient) -> None:
    code = "torch.set_num_threads(2)\nx = torch.rand(400, 400, requires_grad=True)\n(x @ x).sum().backward()\nprint(x.grad.shape)"
    assert rank.run(code).text() == "torch.Size([400, 400])\n"


def test_many_outputs_from_threads(rank: RankClient) -> None:
    code = """
import threading
def work(k):
    for i in range(200): print(f'{k}:{i}\\n', end='')
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print('done')
"""
    lines = rank.run(code).text().splitlines()
    for k in range(4):
        assert [line for line in lines if line.startswith(f"{k}:")] == [f"{k}:{i}" for i in range(200)]
    assert lines[-1] == "done"
