"""The served description is valid OpenAPI, and what it describes is what the router serves and the server carries out."""

import inspect
import re

import pytest
from openapi_spec_validator import validate

from jupyter_dist.protocol.operations import OPERATIONS, PART_OPERATIONS
from jupyter_dist.protocol.parts import find_parts
from jupyter_dist.protocol.schemas import body_schema
from jupyter_dist.server.groups.operations import GroupOperations
from jupyter_dist.server.http.jupyter import JUPYTER
from jupyter_dist.server.http.openapi import build_openapi
from jupyter_dist.server.http.routes import PREFIX, tornado_routes
from jupyter_dist.server.operations import ServerOperations
from jupyter_dist.server.part import ServerPart

VERBS = ("get", "post", "put", "patch", "delete")
WITHOUT_METHOD = {"channel", "openapi"}  # of HTTP alone


async def test_it_is_served_and_valid(jp_serverapp, ask, jp_base_url):
    document = await ask("openapi.json")
    validate(document)
    assert document["servers"] == [{"url": f"{jp_base_url}jupyter-dist/api"}]


def test_every_route_and_verb_is_documented_and_the_other_way_round():
    paths = build_openapi("/", "1")["paths"]
    *routes, (anything, *_) = tornado_routes(JUPYTER)
    assert len(routes) == len(paths)
    for path, item in paths.items():
        sample = f"/{PREFIX}{re.sub(r'{.+?}', 'x', path.replace('{rank}', '0'))}"
        (handler,) = {found for pattern, found in routes if re.fullmatch(pattern, sample)}
        own = {verb for cls in handler.__mro__[1:2] for verb in VERBS if verb in vars(cls)}
        assert own == set(item) & set(VERBS), path
    assert re.fullmatch(anything, f"/{PREFIX}/nothing/here")


def test_names_of_operations_are_unique_and_so_are_their_addresses():
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    assert len({(operation.verb, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if one.name not in WITHOUT_METHOD], ids=lambda o: o.name
)
def test_each_operation_is_a_method_that_takes_its_arguments(operation):
    part = next((name for name, declared in PART_OPERATIONS.items() if operation in declared), None)
    carrier = GroupOperations if operation.is_of_group else ServerOperations
    if part is not None:
        carrier = find_parts("server", ServerPart).classes[part]
    names_first = 2 if part is not None and operation.is_of_group else 1  # self, and the group
    taken = dict(list(inspect.signature(getattr(carrier, operation.name)).parameters.items())[names_first:])
    open_ended = any(one.kind is one.VAR_KEYWORD for one in taken.values())  # as of a dataclass that names all fields
    taken = {name: one for name, one in taken.items() if one.kind is not one.VAR_KEYWORD}
    schemas = [body_schema(model) for model in (operation.body, operation.query) if model is not None]
    fields = {name: field for schema in schemas for name, field in schema["properties"].items()}
    known = {*operation.arguments, *fields, *(["key"] if operation.is_keyed else [])}
    known |= {"owner"} if operation.is_owned else set()
    assert set(taken) <= known
    assert open_ended or known == set(taken)
    for name, parameter in taken.items():
        needed = name in operation.arguments or any(name in schema["required"] for schema in schemas)
        assert (parameter.default is parameter.empty) == needed, name
        if "default" in fields.get(name, {}):
            assert parameter.default == fields[name]["default"], name
