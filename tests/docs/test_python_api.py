"""The public names of the Python client are those of the reference page, each with an example there."""

import inspect
import re
from pathlib import Path
from typing import get_type_hints

import pytest
import typing_extensions

from jupyter_dist import client
from jupyter_dist.client.answers import infos

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text()
EXAMPLES = "\n".join(re.findall(r"^```python[^\n]*\n(.*?)^```$", PAGE, re.M | re.S))
BLOCKING = (client.Client, client.Group, client.Execution, client.Result)
PUBLIC = {getattr(client, name) for name in client.__all__} | {
    each for each in vars(infos).values() if inspect.isclass(each) and each.__module__ == infos.__name__
}

OF_PARTS = {name: getattr(client, name) for name in client.ofparts.__all__}  # imported when they are used


def members(cls):
    return [name for name in dir(cls) if not name.startswith("_")]


def function_of(cls, name):
    found = inspect.getattr_static(cls, name)
    return found.fget if isinstance(found, property) else getattr(cls, name)


def test_each_public_name_is_on_the_page_and_no_other():
    documented = re.findall(r"^\.\. (?:autoclass|autofunction|function|autoexception):: (\w+)", PAGE, re.M)
    assert sorted(documented) == sorted(client.__all__)
    assert ".. automodule:: jupyter_dist.client.answers.infos\n" in PAGE


@pytest.mark.parametrize("cls", BLOCKING)
def test_each_method_and_attribute_is_in_an_example_and_has_a_docstring(cls):
    assert [name for name in members(cls) if not re.search(rf"\.{name}\b", EXAMPLES)] == []
    assert [name for name in members(cls) if not inspect.getdoc(function_of(cls, name))] == []


@pytest.mark.parametrize("name", ["Client", "Group", "Execution"])
def test_the_asynchronous_class_has_the_same_methods(name):
    blocking, asynchronous = getattr(client, name), getattr(client, f"Async{name}")
    only_blocking = {
        "Client": {"ask", "is_own", "url"},
        "Group": {"begin", "start", "trust_nodes", "model"},
        "Execution": {"model", "wait"},
    }
    only_asynchronous = {"Client": {"server"}, "Group": {"stream"}, "Execution": set()}
    assert set(members(blocking)) - set(members(asynchronous)) == only_blocking[name]
    assert set(members(asynchronous)) - set(members(blocking)) == only_asynchronous[name]


def named_classes(hint):
    if inspect.isclass(hint):
        yield hint
    for inner in typing_extensions.get_args(hint):
        yield from named_classes(inner)
    if (origin := typing_extensions.get_origin(hint)) is not None:
        yield from named_classes(origin)


@pytest.mark.parametrize("cls", BLOCKING)
def test_what_a_method_returns_is_public_and_no_dict_of_the_api(cls):
    """Besides `model` and `bundle()`, which are JSON."""
    names = {
        name: value
        for module in (typing_extensions, infos, inspect.getmodule(client.Group))
        for name, value in vars(module).items()
    }
    for name in set(members(cls)) - {"model", "bundle"}:
        hints = get_type_hints(function_of(cls, name), localns=names | OF_PARTS)
        for found in named_classes(hints["return"]):
            assert not typing_extensions.is_typeddict(found), name
            assert not found.__module__.startswith("jupyter_dist") or found in PUBLIC, (name, found)
