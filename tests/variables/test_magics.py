"""Its magics, in a kernel beside the ranks."""

import re

import pytest
from magickernel import kernel_of


@pytest.fixture
def kernel(own_runtime, tmp_path):
    with kernel_of(tmp_path / "tables.ipynb") as kernel:
        yield kernel


def test_variables_of_ranks_are_tables_of_the_kernel(kernel):
    for magic in ("%dist_variables", "%dist_compare x"):
        assert kernel.run(magic).text.startswith("This notebook has no group. Start one: %dist_init -n 2")
    assert kernel.run("%dist_init -n 2 --accelerator cpu").status == "ok"
    kernel.run("same, apart = torch.zeros(2), torch.arange(3.0) + 2 * rank")
    (table,) = kernel.run("%dist_variables").displays
    assert "* apart" not in table["text/plain"]  # they differ in values, which nobody has read
    assert re.search(r"^  same +ranks 0-1 +Tensor +\[2\]", table["text/plain"], re.MULTILINE)
    assert "<td>same</td><td>ranks 0-1</td>" in table["text/html"]
    assert "rank 1" not in kernel.run("%dist_variables -r 0").displays[0]["text/plain"]
    (found,) = kernel.run("%dist_compare apart").displays
    assert "rank 1: 3 of 3 elements differ from rank 0, by at most 2" in found["text/plain"]
    assert "all equal" in kernel.run("%dist_compare same").displays[0]["text/plain"]
    assert "nowhere" in kernel.run("%dist_compare nowhere").error
    assert "usage: %dist_compare" in kernel.run("%dist_compare").error
