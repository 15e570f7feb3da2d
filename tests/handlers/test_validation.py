"""Bad input: one clear sentence each, in one format, and nothing is started."""

import json

import pytest

from jupyter_dist.handlers.base import MAX_BODY_BYTES

STARTS = [
    ({"nme": "x"}, "bad_request", "nme"),
    ({"num_ranks": "4"}, "bad_request", "num_ranks"),
    ({"num_ranks": 0}, "bad_request", "num_ranks"),
    ({"num_ranks": 65}, "bad_request", "num_ranks"),
    ({"num_ranks": True}, "bad_request", "num_ranks"),
    ({"name": "a/b"}, "bad_request", "name"),
    ({"name": ""}, "bad_request", "name"),
    ({"name": 3}, "bad_request", "name"),
    ({"accelerator": "tpu"}, "bad_request", "accelerator"),
    ({"backend": "mpi"}, "bad_request", "backend"),
    ({"backend": "nccl", "accelerator": "cpu"}, "bad_request", "backend"),
    ({"devices": [0], "accelerator": "cpu"}, "bad_devices", "devices"),
    ({"devices": "some"}, "bad_request", "devices"),
    ({"devices": [-1]}, "bad_request", "devices"),
    ({"cwd": "/no/such/place"}, "bad_directory", "/no/such/place"),
    ({"cwd": "x\0y"}, "bad_directory", "cwd"),
    ({"notebook": "no/such/folder/n.ipynb"}, "bad_directory", "notebook"),
    ({"env": {"A": 1}}, "bad_request", "env"),
    ({"env": {"A B": "1"}}, "bad_request", "A B"),
    ({"env": {"RANK": "1"}}, "bad_request", "RANK"),
    ({"environment": "conda-env-lost"}, "bad_environment", "conda-env-lost"),
    ({"python": "python3"}, "bad_environment", "python3"),
    ({"python": "/no/such/python"}, "bad_environment", "/no/such/python"),
]


async def test_starting_with_bad_fields(jp_serverapp, refused, ask):
    for body, code, word in STARTS:
        status, error = await refused("groups", method="POST", json=body)
        assert (status, error["code"]) == (400, code), body
        assert word in error["message"], error
    assert await ask("groups") == {"groups": []}


@pytest.mark.parametrize("body", ["[]", '"x"', "1", "{", "\xff", "null"])
async def test_bodies_that_are_no_objects(jp_serverapp, refused, body):
    status, error = await refused("groups", method="POST", body=body.encode("latin-1"))
    assert (status, error["code"]) == (400, "bad_request")


async def test_what_is_not_there(jp_serverapp, refused):
    for path, code in [
        ("groups/trian", "unknown_group"),
        ("groups/trian/executions", "unknown_group"),
        ("groups/trian/executions/e-1", "unknown_group"),
        ("groups/trian/ranks/0/log", "unknown_group"),
        ("groups/trian/ranks/0/log/download", "unknown_group"),
        ("groups/../../etc/passwd", "not_found"),
        ("groups/%2e%2e%2fx/ranks/0/log", "not_found"),
        ("groups/trian/ranks/x/log", "not_found"),
        ("anything", "not_found"),
    ]:
        status, error = await refused(path)
        assert (status, error["code"]) == (404, code), path


async def test_methods_that_an_address_does_not_take(jp_serverapp, refused):
    for method, path in [("PUT", "groups"), ("DELETE", "environments"), ("POST", "devices")]:
        status, error = await refused(path, method=method)
        assert (status, error["code"]) == (405, "method_not_allowed")


async def test_a_body_that_is_too_large_is_refused(jp_serverapp, refused):
    status, error = await refused("groups", method="POST", body=b" " * (MAX_BODY_BYTES + 1))
    assert (status, error["code"]) == (413, "too_large")


async def test_query_arguments_are_checked(jp_serverapp, refused):
    status, error = await refused("groups/x", params={"wait": "long"})
    assert (status, error["code"]) == (400, "bad_request")
    assert "wait" in error["message"]


async def test_messages_that_the_channel_does_not_know(jp_serverapp, jp_ws_fetch):
    channel = await jp_ws_fetch("jupyter-dist", "api", "channel")
    assert json.loads(await channel.read_message())["type"] == "hello"
    assert json.loads(await channel.read_message()) == {"type": "groups", "groups": []}
    for message, code in [
        ("not json", "bad_request"),
        ("[]", "bad_request"),
        ('{"type": "execute", "code": "1"}', "bad_request"),
        ('{"type": "subscribe", "topic": "log", "group": "x"}', "bad_request"),
        ('{"type": "subscribe", "topic": "memory", "group": "x"}', "unknown_group"),
        ('{"type": "subscribe", "topic": "memory", "group": "x", "since": "0"}', "bad_request"),
    ]:
        channel.write_message(message)
        answer = json.loads(await channel.read_message())
        assert (answer["type"], answer["error"]["code"]) == ("error", code), message
    channel.close()


async def test_devices_are_told_while_somebody_follows(jp_serverapp, jp_ws_fetch):
    channel = await jp_ws_fetch("jupyter-dist", "api", "channel")
    channel.write_message('{"type": "subscribe", "topic": "devices"}')
    kinds = [json.loads(await channel.read_message()) for _ in range(3)]
    assert [message["type"] for message in kinds] == ["hello", "groups", "devices"]
    assert kinds[-1]["host"]["memory_total_bytes"] > 0
    channel.close()
