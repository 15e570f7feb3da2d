"""Documentation and completions in a kernel *Ranks*."""

import pytest
from kernel.conftest import ranks_kernel, spec_path  # noqa: F401  (fixtures)
from waits import PATIENCE, until


@pytest.fixture(scope="module")
def kernel(shared_group, spec_path):  # noqa: F811
    with ranks_kernel() as kernel:
        yield kernel


def test_they_come_from_the_first_chosen_rank_with_types(kernel):
    kernel.run("def scaled(x, *, by=2):\n    'Multiply.'\n    return x * by")
    found = kernel.inspect("scaled(")
    assert "scaled(x, *, by=2)" in found
    assert "Multiply." in found
    assert "return x * by" in kernel.inspect("%%rank 1\nscaled", detail=1)
    assert kernel.inspect("no_such_name") is None
    (typed,) = kernel.types("scal")
    assert (typed["text"], typed["type"], typed["signature"]) == ("scaled", "function", "(x, *, by=2)")
    assert {"type": "module"}.items() <= kernel.types("torch.nn.functiona")[0].items()
    # A rank that runs a cell describes what needs no code of users, and says that it is busy.
    request = kernel.client.execute("scaled.secret = 1; import time; print('begun', flush=True); time.sleep(1000)")
    until(lambda: "is running a cell" in (kernel.inspect("scaled") or ""))
    assert "Multiply." in kernel.inspect("scaled")
    assert kernel.inspect("rank").startswith("This rank is running a cell.")
    kernel.manager.interrupt_kernel()
    assert kernel.reply(request)["ename"] == "KeyboardInterrupt"


def test_they_are_answered_while_a_cell_runs(kernel):
    kernel.run("kept = 5")
    begun = []

    def ask_once_it_runs():
        while not begun:
            message = kernel.client.get_iopub_msg(timeout=PATIENCE)
            if message["msg_type"] == "stream" and "begun" in message["content"]["text"]:
                begun.append(kernel.complete("kep"))
        kernel.manager.interrupt_kernel()

    cell = kernel.run("import time\nprint('begun')\ntime.sleep(1000)", after=ask_once_it_runs)
    assert (cell.status, begun) == ("error", [["kept"]])
