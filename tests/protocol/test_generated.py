"""What is made from the types is what lies in the tree, and the types are what handlers and clients use."""

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path

import answers
import jsonschema
import pytest

from jupyter_dist.protocol.models import models
from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.protocol.schemas import (
    body_schema,
    components,
    fields_of,
    object_schema,
    run_options_of_parts,
    schema_name,
)
from jupyter_dist.protocol.wire import messages, requests
from jupyter_dist.protocol.wire.specs import ExecutionSpec
from jupyter_dist.server.groups.resolve import WantedGroup
from jupyter_dist.server.http.page.subscriptions import SUBSCRIPTIONS

ROOT = Path(__file__).parents[2]
OF_TYPES = ["labextension/src/services/protocol.ts"]
MADE = [*OF_TYPES, "labextension/src/services/rest/api.ts", "jupyter_dist/client/blocking/wrapped.py"]
# Files are made in the environment for development; those of the matrix of versions have no linters.
needs_ruff = pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="made sources are formatted by ruff")


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / ".ci" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_ruff
@pytest.mark.parametrize("path", MADE)
def test_the_file_is_what_the_types_make(path):
    assert (ROOT / path).read_text() == generator().files()[ROOT / path], "run `make generate`"


@needs_ruff
def test_a_changed_type_changes_every_file(monkeypatch):
    class CommTaken(models.TypedDict):
        """With one field more."""

        waits: bool
        added: int

    CommTaken.__module__ = models.__name__
    monkeypatch.setattr(models, "CommTaken", CommTaken)
    components.cache_clear()
    try:
        changed = generator().files()
    finally:
        components.cache_clear()
    assert all("added" in changed[ROOT / path] for path in OF_TYPES)


def test_every_answer_and_body_is_a_type_of_ours():
    for operation in OPERATIONS:
        answer = operation.answer
        if answer.model is not None and answer.model != dict[str, models.Any]:
            assert schema_name(answer.model) in components(), operation.name
            assert not answer.field or answer.field in fields_of(answer.model), operation.name
        for model in (operation.body, operation.query):
            assert model is None or body_schema(model)["additionalProperties"] is False


def test_what_is_asked_for_and_what_is_taken_have_the_same_fields():
    assert WantedGroup.names() - {"gpus_per_node"} == set(fields_of(requests.StartRequest))  # the launcher adds it
    taken = {field.name for field in dataclasses.fields(ExecutionSpec)}
    beside = {"code", "execution_count"}  # agents of 0.3 know no other field of an ExecutionSpec
    beside |= run_options_of_parts().keys()  # in `options`
    assert set(fields_of(requests.RunRequest)) - beside == taken - {
        "options",
        "execution_id",
        "owner",
        "transfer",
        "expression",
    }  # a transfer has a request of its own
    for kind in SUBSCRIPTIONS.values():
        topic = f"{kind.topic.capitalize()}Topic"
        assert set(kind.fields) == set(fields_of(getattr(messages, topic))) - {"topic"}
        assert set(kind.fields) < set(object_schema(messages.ClientMessage)["properties"])


def test_the_source_needs_the_standard_library_alone():
    code = (
        "import sys; sys.modules['typing_extensions'] = None; sys.path.insert(0, sys.argv[1]);"
        "import jupyter_dist.protocol.wire.requests, jupyter_dist.protocol.wire.messages; print(len(sys.modules))"
    )
    subprocess.run([sys.executable, "-S", "-c", code, str(ROOT)], check=True, capture_output=True)


def test_an_answer_with_a_field_more_or_less_is_found():
    good = {"waits": True}
    path = "groups/g/ranks/0/comms"
    answers.check_answer("POST", path, 202, good)
    for bad in ({**good, "added": 1}, {}, {"waits": None}):
        with pytest.raises(jsonschema.ValidationError):
            answers.check_answer("POST", path, 202, bad)
    with pytest.raises(AssertionError, match="says nothing"):
        answers.check_answer("POST", path, 201, good)
