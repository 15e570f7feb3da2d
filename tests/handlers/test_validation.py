"""Bad input: one clear sentence each, in one format, and nothing is started."""

import json

import pytest

from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.protocol.operations import BY_NAME, OPERATIONS
from jupyter_dist.protocol.operations.of_server import MAX_START_BYTES
from jupyter_dist.protocol.schemas import body_schema
from jupyter_dist.protocol.wire.requests import MAX_CODE_BODY_BYTES
from jupyter_dist.server.http.strictjson import MAX_VALUES, SMALL_BYTES, parse_json

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
    ({"env": {"TORCHELASTIC_USE_AGENT_STORE": "1"}}, "bad_request", "TORCHELASTIC_USE_AGENT_STORE"),
    ({"env": {"GLOO_SOCKET_IFNAME": "eth0"}}, "bad_request", "GLOO_SOCKET_IFNAME"),
    ({"env": {"NCCL_SOCKET_IFNAME": "eth0"}}, "bad_request", "NCCL_SOCKET_IFNAME"),
    ({"env": {"NCCL_COMM_ID": "0.0.0.0:1"}}, "bad_request", "NCCL_COMM_ID"),
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
        *([("groups/trian/executions/e-1/trace", "unknown_group")] if "trace_file" in BY_NAME else []),
        ("groups/trian/executions/../../x/trace", "not_found"),
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
    limits = {"groups/x/interrupt": SMALL_BYTES, "groups": MAX_START_BYTES, "groups/x/executions": MAX_CODE_BODY_BYTES}
    for path, size in limits.items():
        status, error = await refused(path, method="POST", body=b" " * (size + 1))
        assert (status, error["code"]) == (413, "too_large")


# Made when they are sent: each worker collects this file.
HEAVY = {
    "unknown fields": lambda: b"{" + b",".join(b'"x%d":1' % number for number in range(900_000)) + b"}",
    "variables": lambda: b'{"env": {' + b",".join(b'"x%d":"1"' % number for number in range(400_000)) + b"}}",
    "variables that are numbers": lambda: (
        b'{"env": {' + b",".join(b'"x%d":1' % number for number in range(400_000)) + b"}}"
    ),
    "devices": lambda: b'{"devices": [' + b",".join([b"-1"] * 2_000_000) + b"]}",
    "empty lists": lambda: b'{"code": [' + b",".join([b"[]"] * 3_000_000) + b"]}",
    "one field, very often": lambda: b"{" + b",".join([b'"a":1'] * 1_000_000) + b"}",
    "nested": lambda: b'{"code": ' + b"[" * 4_000_000,
    "a long number": lambda: b'{"code": ' + b"1" * 8_000_000 + b"}",
    "a long name": lambda: b'{"' + b"x" * 8_000_000 + b'": 1}',
    "spaces": lambda: b'{"code": ' + b" " * 9_000_000 + b"}",
    "a string without end": lambda: b'{"code": "' + b"x" * 9_000_000,
}


@pytest.mark.parametrize("make", HEAVY.values(), ids=HEAVY)
async def test_a_body_that_takes_long_to_look_at_is_refused_before_that(jp_serverapp, refused, make):
    """Each of the first four held up the server for 16 seconds and more."""
    body = make()
    assert (await refused("groups/x/interrupt", method="POST", body=body))[0] == 413
    for path in ("groups", "groups/x/executions", "groups/x/ranks/0/comms"):
        status, error = await refused(path, method="POST", body=body)
        assert status in (400, 413), error
        assert len(error["message"]) < 300


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ('{"num_ranks": 2, "num_ranks": 3}', "'num_ranks' is given twice"),
        ('{"env": {"A": "1", "A": "2"}}', "'A' is given twice"),
        ('{"num_ranks": NaN}', "NaN"),
        ('{"num_ranks": -Infinity}', "Infinity"),
        ('{"num_ranks": 1e999}', "1e999"),
        ('{"num_ranks": 2.0}', "num_ranks"),
        ('{"devices": [' + ",".join(["-1"] * 1500) + "]}", "devices"),
        ('{"env": {' + ",".join(f'"x{number}": 1' for number in range(1500)) + "}}", "env"),
        ("{" + ",".join(f'"x{number}": 1' for number in range(1500)) + "}", "x0"),
        ('{"devices": [' + ",".join(["1"] * 9000) + "]}", f"more than {MAX_VALUES} values"),
        ('{"cwd": ' + "[" * 30 + "]" * 30 + "}", "nested"),
        ('{"name": ' + "[" * 9000 + "]" * 9000 + "}", "nested"),
        ('{"name": "' + "x" * 300 + '"}', "name"),
        ('{"env": {"' + "x" * 300 + '": "1"}}', "env"),
        ('{"python": "/' + "x" * 5000 + '"}', "python"),
    ],
)
async def test_what_json_leaves_open_and_what_is_too_much_is_refused_by_name(jp_serverapp, refused, body, word):
    status, error = await refused("groups", method="POST", body=body)
    assert (status, error["code"]) == (400, "bad_request")
    assert word in error["message"]
    assert len(error["message"]) < 300


def test_code_of_any_length_and_kind_arrives_as_it_was_sent():
    for code in ("x" * 70_000, '"\\\n\u2028é' * 30_000, "", "\\" * 70_000):
        for fields in ({"code": code, "ranks": "0", "silent": False}, {"cell_id": None, "code": code}):
            for is_ascii in (True, False):
                assert parse_json(json.dumps(fields, ensure_ascii=is_ascii, indent=2).encode()) == fields
    deep = {"message": {"command": "dumpCell", "arguments": {"code": "x" * 70_000, "no": {}, "of": [{"a": 1}]}}, "n": 1}
    assert parse_json(json.dumps(deep, indent=2).encode()) == deep
    for _ in range(30):
        deep = {"deep": deep}
    many = {f"n{i}": "x" * 99 for i in range(2100)}
    for refused in (deep, {"m": ["\\" * 70_000, *range(30_000)]}, {"m": many}, {"m": ['"'] * 99_000}):
        with pytest.raises(JupyterDistError):
            parse_json(json.dumps(refused).encode())
    for junk in (b"]", b"x", b', "a"', b"{}", b'"'):
        with pytest.raises(JupyterDistError):
            parse_json(b'{"code": "' + b"x" * 70_000 + b'"}' + junk)


def unbounded(schema, path):
    """Where something that is sent to us may be as long or large as it likes."""
    kinds = schema.get("type", [])
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if "string" in kinds and not {"maxLength", "enum"} & set(schema):
        yield f"{path}: a string"
    if kinds & {"integer", "number"} and not {"minimum", "maximum"} <= set(schema):
        yield f"{path}: a number"
    if "array" in kinds:
        yield from [f"{path}: a list"] if "maxItems" not in schema else unbounded(schema["items"], f"{path}[]")
    if "object" in kinds:
        for name, field in schema.get("properties", {}).items():
            yield from unbounded(field, f"{path}.{name}")
        others = schema.get("additionalProperties", {})
        if others is not False:
            if not {"maxProperties", "propertyNames"} <= set(schema) or "maxLength" not in schema["propertyNames"]:
                yield f"{path}: an object"
            yield from unbounded(others, f"{path}.*")
    for inner in (*schema.get("anyOf", []), *(schema[name] for name in ("then", "else") if name in schema)):
        yield from unbounded(inner, path)
    if not kinds and not {"enum", "const", "anyOf", "if"} & set(schema):
        yield f"{path}: anything"


def test_all_that_we_are_sent_is_bounded():
    found = []
    for operation in OPERATIONS:
        for model in (operation.body, operation.query):
            found += unbounded(body_schema(model), operation.name) if model is not None else []
    assert found == []
    assert list(unbounded({"type": ["object", "null"]}, "x")) == ["x: an object", "x.*: anything"]


async def test_query_arguments_are_checked(jp_serverapp, refused):
    for path, name, values in [
        ("groups/x", "wait", ["long", "nan", "inf", "-inf", "1e999", "1e2", "-1", "301", "", "1_0", "٣", " 1", "0x1"]),
        ("groups/x", "not_state", ["x" * 100]),
        ("groups/x/executions/e-1", "wait", ["nan", "Infinity"]),
        ("groups/x/ranks/0/log", "tail_bytes", ["0", "1.5", "99999999999", "nan", "True"]),
        ("groups/x/ranks/0/log", "before", ["0", "9" * 17, "9" * 9999]),
    ]:
        for value in values:
            status, error = await refused(path, params={name: value})
            assert (status, error["code"]) == (400, "bad_request"), (name, value)
            assert name in error["message"]


async def test_messages_that_the_channel_does_not_know(jp_serverapp, jp_ws_fetch):
    channel = await jp_ws_fetch("jupyter-dist", "api", "channel")
    assert json.loads(await channel.read_message())["type"] == "hello"
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
    kinds = [json.loads(await channel.read_message()) for _ in range(2)]
    assert [message["type"] for message in kinds] == ["hello", "devices"]
    assert kinds[-1]["host"]["memory_total_bytes"] > 0
    channel.close()
