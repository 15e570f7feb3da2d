"""A rank whose device context is lost: one sentence, the others know at once, and Replace alone puts it right.

There is no device here: torch raises the error of one (as on an H200) from its C++ code, where a cell asks it to.
"""

from __future__ import annotations

LOSE = "kept = 41\ntorch._assert_async(torch.tensor(0), 'CUDA error: device-side assert triggered')"
SENTENCE = "This rank's device context is lost"


def process_groups(client):
    return [rank["process_group"] for rank in client.group["ranks"]]


def sum_of_ranks(client):
    cell = client.submit("t = torch.ones(1); dist.all_reduce(t); print(globals().get('kept'), t.item())", [0, 1])
    assert client.ended(cell)["state"] == "ok"
    return client.text(0, cell), client.text(1, cell)


def test_a_rank_that_has_lost_its_device_says_so_and_is_replaced_by_one_request_again_and_again(pair):
    pair.run("kept = 42", [0])
    for _ in range(2):
        waits = pair.submit("dist.barrier()", [0])
        lost = pair.submit(LOSE, [1])
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
        "torch._assert_async(torch.tensor(0), 'CUDA error: invalid device ordinal')",  # the device is whole
    ):
        cell = pair.submit(code, [1])
        assert pair.ended(cell)["state"] == "error"
        assert SENTENCE not in pair.text(1, cell, "stderr")
    assert process_groups(pair) == ["ok", "ok"]
