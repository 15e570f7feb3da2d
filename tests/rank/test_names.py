"""What every rank has in its namespace."""

from __future__ import annotations

import dataclasses

from rankclient import RankClient

HIDDEN = "rank, local_rank, world_size, device, gpu_id, __rank__, __world_size__, dist, torch, track"


def test_names_are_there_from_the_start_and_after_reset(shared: RankClient) -> None:
    code = f"print(*[type(each).__name__ for each in ({HIDDEN})], gpu_id, __rank__, __world_size__)"
    said = "int int int device NoneType int int module module function None 0 1\n"
    assert shared.run(code).text() == said
    assert shared.run("%who").text() == "Interactive namespace is empty.\n"
    shared.run("%reset -f")
    assert shared.run(code).text() == said


def test_gpu_id_is_the_device_as_the_user_named_it(shared: RankClient) -> None:
    spec = dataclasses.replace(
        shared.spec, accelerator="cuda", device="cuda:1", local_rank=1, env={"CUDA_VISIBLE_DEVICES": "3,4"}
    )
    code = f"from jupyter_dist.protocol.wire.specs import RankSpec\nfrom jupyter_dist.rank.main import gpu_id as of\nprint(of(RankSpec(**{spec.to_dict()!r})))"
    assert shared.run(code).text() == "4\n"
