"""A rank whose device context is lost: one sentence, the others know at once, and Replace alone puts it right.

There is no device here: torch raises the error of one (as on an H200) from its C++ code, where a cell asks it to. Those
of NCCL are recorded texts, which Python's own C code raises as an error of torch's class.
"""

from __future__ import annotations

from jupyter_dist.protocol.accelerators import ACCELERATORS

LOSE = "kept = 41\ntorch._assert_async(torch.tensor(0), 'CUDA error: device-side assert triggered')"
SENTENCE = "This rank's device context is lost"
# As torch words an error of NCCL's (C10D_NCCL_CHECK); NCCL itself says the last line, with a number in later versions.
OF_NCCL = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled cuda error (run with"
    " NCCL_DEBUG=INFO for details), NCCL version 2.28.9\nncclUnhandledCudaError: Call to CUDA function failed."
    "\nLast error:\nCuda failure {}"
)
NUMBERED = "710 'device-side assert triggered'"


def of_nccl(failure):
    """A cell in which C code raises this error."""
    text = OF_NCCL.format(failure)
    return (
        f"import ctypes\nctypes.pythonapi.PyErr_SetString(ctypes.py_object(dist.DistBackendError), {text.encode()!r})"
    )


def process_groups(client):
    return [rank["process_group"] for rank in client.group["ranks"]]


def sum_of_ranks(client):
    cell = client.submit("t = torch.ones(1); dist.all_reduce(t); print(globals().get('kept'), t.item())", [0, 1])
    assert client.ended(cell)["state"] == "ok"
    return client.text(0, cell), client.text(1, cell)


def test_a_rank_that_has_lost_its_device_says_so_and_is_replaced_by_one_request_again_and_again(pair):
    pair.run("kept = 42", [0])
    for lose in (LOSE, f"kept = 41\n{of_nccl(NUMBERED)}"):
        waits = pair.submit("dist.barrier()", [0])
        lost = pair.submit(lose, [1])
        assert pair.ended(lost)["state"] == "error"
        assert pair.text(1, lost, "stderr").count(SENTENCE) == 1
        assert pair.ended(waits)["state"] == "error"  # nobody waits for it until a time limit
        pair.wait(lambda: process_groups(pair)[1] == "lost")
        pair.wait(lambda: "Rank 1 lost the device" in (pair.group["note"] or ""))
        # Its values on the CPU are there, and whatever runs there, the device stays lost.
        assert pair.text(1, pair.run("print(kept)", [1])["id"]) == "41\n"
        assert process_groups(pair)[1] == "lost"
        pair.request("replace")
        pair.wait_group("ready")
        assert sum_of_ranks(pair) == ("42 2.0\n", "None 2.0\n")
        assert process_groups(pair) == ["ok", "ok"]


def test_an_error_that_only_has_the_words_is_the_users_own(pair):
    for code in (
        "raise RuntimeError('CUDA error: device-side assert triggered')",
        "raise getattr(torch, 'AcceleratorError', RuntimeError)('CUDA error: an illegal memory access was encountered')",
        f"raise dist.DistBackendError({OF_NCCL.format(NUMBERED)!r})",
        "torch._assert_async(torch.tensor(0), 'CUDA error: invalid device ordinal')",  # the device is whole
        of_nccl("1 'invalid argument'"),
    ):
        cell = pair.submit(code, [1])
        assert pair.ended(cell)["state"] == "error"
        assert SENTENCE not in pair.text(1, cell, "stderr")
    assert process_groups(pair) == ["ok", "ok"]


def test_every_wording_of_nccl_is_known():
    signs = ACCELERATORS["cuda"].lost_signs
    for failure in (
        NUMBERED,
        "'device-side assert triggered'",
        "700 'an illegal memory access was encountered'",
        "214 'uncorrectable ECC error encountered'",
    ):
        assert any(sign.search(OF_NCCL.format(failure)) for sign in signs), failure
    assert not any(sign.search(OF_NCCL.format("2 'out of memory'")) for sign in signs)
